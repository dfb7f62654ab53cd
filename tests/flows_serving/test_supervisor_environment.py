"""What a detached supervisor is told: the settings of whoever started it, wherever it runs."""

import os
from pathlib import Path

import pytest

from docmill.settings import load_settings
from flows.detached_supervisors import MARK, environment_of

TOML = """
[serving]
python = "vllm/bin/python"
api_key_file = "keys/vllm"
models = { tiny = "models/tiny" }
base_urls = []
[objects]
endpoint = "http://127.0.0.1:9"
access_key = "a"
secret_key_file = "keys/s3"
"""


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    for name in [each for each in os.environ if each.startswith("DOCMILL_")]:
        monkeypatch.delenv(name)
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "vllm").write_text("of-vllm")
    (tmp_path / "keys" / "s3").write_text("of-the-store")
    (tmp_path / "docmill.toml").write_text(TOML)
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("DOCMILL_DATA_DIR", "data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_reads_the_same_settings_from_its_own_folder(project, monkeypatch):
    here = load_settings()
    environment = environment_of(here)
    monkeypatch.chdir(project / "data")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    there = load_settings()
    assert there.data_dir == project / "data" and environment[MARK] == str(project / "data")
    assert there.serving.python == project / "vllm" / "bin" / "python"
    assert there.serving.models == {"tiny": project / "models" / "tiny"}
    assert there.serving.api_key == here.serving.api_key and there.objects.secret_key == here.objects.secret_key


def test_it_gets_no_secret_of_the_store_and_nothing_of_a_flow_run(project, monkeypatch):
    monkeypatch.setenv("PREFECT__FLOW_RUN_ID", "0")
    environment = environment_of(load_settings())
    assert "of-the-store" not in environment.values() and "of-vllm" not in environment.values()
    assert not [name for name in environment if name.startswith("PREFECT_")]


def test_what_is_set_in_this_process_alone_goes_along(project):
    settings = load_settings()
    python = settings.serving.model_copy(update={"python": Path("other/python")})
    changed = settings.model_copy(update={"serving": python})
    assert environment_of(changed)["DOCMILL_SERVING_PYTHON"] == str(project / "other" / "python")
