"""Credentials that nobody wrote into docmill's settings."""

from __future__ import annotations

import urllib3
from minio.credentials.credentials import Credentials
from minio.credentials.providers import (
    AWSConfigProvider,
    ChainedProvider,
    EnvAWSProvider,
    EnvMinioProvider,
    IamAwsProvider,
    MinioClientConfigProvider,
    Provider,
)

from docmill.failures import AccessDenied


class CredentialsChain(Provider):
    """AWS_* and MINIO_* variables, ~/.aws/credentials, ~/.mc/config.json, the role of the machine or pod."""

    def __init__(self) -> None:
        # Off AWS nobody answers at the role's address: do not wait long for that.
        quick = urllib3.PoolManager(timeout=urllib3.Timeout(connect=1.0, read=3.0), retries=False)
        self._chain = ChainedProvider(
            [
                EnvAWSProvider(),
                EnvMinioProvider(),
                AWSConfigProvider(),
                MinioClientConfigProvider(),
                IamAwsProvider(http_client=quick),
            ]
        )

    def retrieve(self) -> Credentials:
        """The first credentials found.

        Raises:
            AccessDenied: there are none.
        """
        try:
            return self._chain.retrieve()
        except (ValueError, urllib3.exceptions.HTTPError, OSError) as error:
            raise AccessDenied(
                "no credentials for the object store were found",
                remedy="set objects.access_key and objects.secret_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            ) from error
