"""What an S3 server, or the way to it, says went wrong, in docmill's errors. By code and status, never by text."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import ParseError

import urllib3
from minio.error import InvalidResponseError, MinioException, S3Error, ServerError

from docmill.failures import (
    AccessDenied,
    ConfigurationError,
    DocmillError,
    DocumentNotFound,
    ObjectStoreUnavailable,
)

TRANSIENT = frozenset(
    {
        *("SlowDown", "InternalError", "ServiceUnavailable", "RequestTimeout", "Throttling", "ThrottlingException"),
        *("TooManyRequests", "OperationAborted", "XMinioServerNotInitialized", "ServerNotInitialized"),
    }
)
REFUSED = frozenset(
    {
        *("AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"),
        *("AllAccessDisabled", "AccountProblem", "NotSignedUp", "TokenRefreshRequired"),
    }
)
MISSING = frozenset({"NoSuchKey", "NoSuchVersion", "ResourceNotFound", "MethodNotAllowed"})
CHANGED = frozenset({"PreconditionFailed"})


@contextlib.contextmanager
def translated(operation: str, bucket: str | None = None, key: str | None = None) -> Iterator[None]:
    """Let nothing but docmill's errors out.

    Args:
        operation: what was tried, for the message: "read", "list".
        bucket: where.
        key: which object.
    """
    try:
        yield
    except DocmillError:
        raise
    except S3Error as error:
        raise _of_s3(error, operation, bucket, key) from error
    except ServerError as error:
        raise _of_status(error.status_code, operation, bucket, key) from error
    except InvalidResponseError as error:
        # The exception has no public attribute for its status.
        raise _of_status(int(getattr(error, "_code", 0)), operation, bucket, key) from error
    except urllib3.exceptions.SSLError as error:
        raise ConfigurationError(
            "the object store's certificate is not trusted",
            remedy="set objects.ca_file to the certificate of its authority, or correct objects.endpoint",
        ) from error
    except urllib3.exceptions.LocationParseError as error:
        raise ConfigurationError("objects.endpoint is not a URL") from error
    except (urllib3.exceptions.HTTPError, MinioException, ParseError, UnicodeDecodeError) as error:
        # Broken connections, time-outs, and answers cut off in the middle.
        raise ObjectStoreUnavailable(
            f"the object store did not answer while docmill tried to {operation} {_place(bucket, key)}",
            detail={"cause": type(error).__name__},
        ) from error
    except ValueError as error:
        # The client refuses names that S3 does not know before it asks the server.
        raise ConfigurationError(
            f"S3 knows no such name: {_place(bucket, key)}",
            remedy="bucket names have 3 to 63 lower-case letters, digits, dots and hyphens; "
            "keys have no '.' or '..' between slashes",
        ) from error


def _place(bucket: str | None, key: str | None) -> str:
    if bucket is None:
        return "the buckets"
    return f"s3://{bucket}/{key}" if key else f"the bucket {bucket}"


def _of_s3(error: S3Error, operation: str, bucket: str | None, key: str | None) -> DocmillError:
    code = error.code or ""
    status = int(getattr(error.response, "status", 0) or 0)
    detail: dict[str, Any] = {"s3_code": code, "status": status, "request_id": error.request_id}
    place = _place(bucket, key)
    if code in TRANSIENT or status >= 500 or status == 429:
        return _unavailable(error, operation, place, detail)
    if code == "NoSuchBucket":
        return DocumentNotFound(
            f"there is no bucket {bucket}",
            remedy="check the bucket's name and objects.endpoint, or make the bucket",
            detail=detail,
        )
    if code in CHANGED:
        return DocumentNotFound(f"{place} has changed since it was listed", detail=detail)
    if code in MISSING:
        return DocumentNotFound(f"{place} is not there", detail=detail)
    if code == "RequestTimeTooSkewed":
        return AccessDenied(
            "the object store refuses requests from this machine's clock",
            remedy="set the clock: it is more than 15 minutes off",
            detail=detail,
        )
    if code == "InvalidObjectState":
        return AccessDenied(f"{place} is archived", remedy="restore it from the archive first", detail=detail)
    if code in ("AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException"):
        return ConfigurationError(
            f"{place} is in another region", remedy="set objects.region to the bucket's region", detail=detail
        )
    if code in REFUSED or status in (401, 403):
        return AccessDenied(f"the object store does not let docmill {operation} {place}", detail=detail)
    if status == 404:
        return DocumentNotFound(f"{place} is not there", detail=detail)
    return ConfigurationError(f"the object store refused to {operation} {place}: {code or status}", detail=detail)


def _unavailable(error: S3Error, operation: str, place: str, detail: dict[str, Any]) -> ObjectStoreUnavailable:
    asked = getattr(error.response, "headers", {}).get("Retry-After", "")
    if asked.isdigit():
        detail["retry_after"] = float(asked)
    return ObjectStoreUnavailable(
        f"the object store could not {operation} {place} now: {detail['s3_code'] or detail['status']}", detail=detail
    )


def _of_status(status: int, operation: str, bucket: str | None, key: str | None) -> DocmillError:
    """For answers without S3's own error body: a gateway in between, or something that is no S3 server."""
    place, detail = _place(bucket, key), {"status": status}
    if status >= 500 or status in (408, 429):
        return ObjectStoreUnavailable(f"the object store answered {status} to {operation} {place}", detail=detail)
    if status in (401, 403):
        return AccessDenied(f"the object store does not let docmill {operation} {place}", detail=detail)
    if status == 412:
        return DocumentNotFound(f"{place} has changed since it was listed", detail=detail)
    return ConfigurationError(
        f"objects.endpoint does not answer like an S3 server (status {status})",
        remedy="set objects.endpoint to the S3 port of the store, not that of its web console",
        detail=detail,
    )
