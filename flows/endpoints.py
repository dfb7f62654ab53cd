"""Where the three servers are: those of the settings, or the embedded ones of the data folder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from docmill.settings import CONFIG_VARIABLE, Settings, config_file
from storage.embedded.postgres import EmbeddedPostgres
from storage.embedded.seaweed import EmbeddedObjectStore

_CARRIED = ("DOCMILL_PIPELINE_", "DOCMILL_OCR_", "DOCMILL_SERVING_")


@dataclass(frozen=True, slots=True)
class ObjectAccess:
    """How to reach the S3 server. Keys are None where the credentials chain is to find them."""

    endpoint: str
    access_key: str | None
    secret_key: str | None = field(repr=False)
    region: str | None


def database_url(settings: Settings) -> str:
    """The ledger's database, with its password.

    Raises:
        DatabaseUnavailable: the embedded server is asked for and was never started.
    """
    if settings.database.url is not None:
        return settings.database.url.get_secret_value()
    return EmbeddedPostgres(settings.data_dir).url()


def object_access(settings: Settings) -> ObjectAccess:
    """The S3 server and its credentials.

    Raises:
        ObjectStoreUnavailable: the embedded server is asked for and was never started.
    """
    objects = settings.objects
    if objects.endpoint is None:
        embedded = EmbeddedObjectStore(settings.data_dir).access()
        return ObjectAccess(embedded.url, embedded.access_key, embedded.secret_key, embedded.region)
    access = objects.access_key.get_secret_value() if objects.access_key else None
    secret = objects.secret_key.get_secret_value() if objects.secret_key else None
    return ObjectAccess(objects.endpoint, access, secret, objects.region)


def point_prefect(settings: Settings, embedded_api: str | None) -> None:
    """Tell Prefect's client in this process, and in those it starts, which server to use.

    Must come before Prefect is imported, which reads it once. Never the temporary server that Prefect would start by
    itself, and no telemetry.
    """
    url = settings.prefect.api_url or embedded_api
    if url is not None:
        os.environ["PREFECT_API_URL"] = url
    if settings.prefect.api_key is not None:
        os.environ["PREFECT_API_KEY"] = settings.prefect.api_key.get_secret_value()
    os.environ["PREFECT_SERVER_ALLOW_EPHEMERAL_MODE"] = "false"
    os.environ["PREFECT_SERVER_ANALYTICS_ENABLED"] = "false"
    os.environ["DO_NOT_TRACK"] = "1"
    os.environ.setdefault("PREFECT_LOGGING_EXTRA_LOGGERS", "docmill,flows,tasks,serving,storage,console")


def carried_environment(settings: Settings) -> dict[str, str]:
    """What a run on this machine's own worker gets along, so that it sees the settings of whoever started it.

    The configuration file, the data folder, and the groups without secrets; Prefect keeps these values with the run.
    """
    path = config_file()
    carried = {"DOCMILL_DATA_DIR": str(settings.data_dir)}
    if path is not None:
        carried[CONFIG_VARIABLE] = str(path.resolve())
    for name, value in os.environ.items():
        if name.startswith(_CARRIED) and not any(secret in name for secret in ("PASSWORDS", "API_KEY")):
            carried[name] = value
    return carried
