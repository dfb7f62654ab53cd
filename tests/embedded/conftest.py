import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data folder that the user that Postgres runs as can reach."""
    folder = Path(tempfile.mkdtemp(prefix="docmill-data-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def listening(pids: set[int]) -> set[tuple[str, int]]:
    """Addresses that these processes listen on."""
    return {
        (each.laddr.ip, each.laddr.port)
        for pid in pids
        for each in psutil.Process(pid).net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    }


@pytest.fixture(name="listening")
def _listening():
    return listening
