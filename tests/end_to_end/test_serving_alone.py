"""``docmill serve`` on a GPU host where nothing else of docmill runs: it brings up Postgres, and only that."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_files import write_model
from scripted_python import ScriptedPython

from flows.detached_supervisors import MARK
from storage.embedded.processes import processes_marked

pytestmark = pytest.mark.services


@pytest.fixture
def host(docmill, tmp_path) -> Iterator[dict[str, str]]:
    """The variables of a host with a folder of its own; its configuration has relative paths."""
    ScriptedPython(tmp_path / "vllm")
    write_model(tmp_path / "models" / "tiny")
    (tmp_path / "docmill.toml").write_text(
        'data_dir = "data"\n[serving]\npython = "vllm/bin/python"\nprofile = "tiny"\n'
        'models = { tiny = "models/tiny" }\ncpu_kv_cache_bytes = 67108864\ndrain_seconds = 5\n'
    )
    variables = {"DOCMILL_CONFIG": str(tmp_path / "docmill.toml"), "DOCMILL_DATA_DIR": str(tmp_path / "data")}
    yield variables
    docmill.run("down", variables=variables, cwd=tmp_path)
    assert processes_marked(MARK, variables["DOCMILL_DATA_DIR"]) == []


def test_serve_needs_nothing_to_be_up(docmill, host, tmp_path: Path) -> None:
    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return docmill.run(*arguments, code=code, variables=host, cwd=tmp_path)

    assert "docmill up" in run("servers", code=5).stderr
    assert "serves tiny" in run("serve", "--detach").stdout
    parts = {part["component"]: part["state"] for part in json.loads(run("status", "--json").stdout)}
    assert parts.pop("model tiny") == "ready" and parts.pop("postgres") == "running"
    assert set(parts.values()) == {"stopped"}, parts
    assert "stopped: tiny" in run("stop", "tiny").stdout
    logs = tmp_path / "data" / "logs" / "model-servers"
    assert all(each.stat().st_mode & 0o077 == 0 for each in logs.iterdir())
