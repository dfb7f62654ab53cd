"""Servers that several suites share: one each for a whole test session, in a folder that goes away with it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.embedded.postgres import EmbeddedPostgres
from storage.embedded.seaweed import EmbeddedObjectStore, S3Access


@pytest.fixture(scope="session")
def service_folder() -> Iterator[Path]:
    """A data folder for servers. Not pytest's own: as root that is closed to the user that Postgres runs as."""
    folder = Path(tempfile.mkdtemp(prefix="docmill-tests-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def embedded_postgres(service_folder: Path) -> Iterator[EmbeddedPostgres]:
    """A running Postgres; ``.url(DATABASE)`` and ``.create_database(NAME)`` are what tests need."""
    server = EmbeddedPostgres(service_folder)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_url(embedded_postgres: EmbeddedPostgres) -> str:
    """The URL of the running Postgres' database ``docmill``, whose user may make databases."""
    return embedded_postgres.url()


@pytest.fixture(scope="session")
def object_store_access(service_folder: Path) -> Iterator[S3Access]:
    """A running S3 server (SeaweedFS)."""
    server = EmbeddedObjectStore(service_folder)
    access = server.start()
    yield access
    server.stop()
