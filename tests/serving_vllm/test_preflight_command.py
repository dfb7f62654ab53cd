import json
import sys
from pathlib import Path

import pytest
from model_files import write_model
from vllm_package import write_vllm

from console import main
from console.preflight import gpu_indexes
from docmill.failures import ConfigurationError


@pytest.fixture(autouse=True)
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = write_vllm(tmp_path / "site")
    monkeypatch.setenv("DOCMILL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("DOCMILL_SERVING_PYTHON", str(python))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["docmill", *arguments])
    with pytest.raises(SystemExit) as ended:
        main.main()
    return int(ended.value.code or 0)


def test_what_a_start_would_miss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_model(tmp_path / "qwen")
    assert run(monkeypatch, "preflight", str(model), "--json") == 0
    checks = {each["what"]: each for each in json.loads(capsys.readouterr().out)}
    assert checks["model"]["state"] == checks["flags"]["state"] == "ok"
    (model / "tokenizer.json").unlink()
    assert run(monkeypatch, "preflight", str(model), "--json") == 2
    checks = {each["what"]: each for each in json.loads(capsys.readouterr().out)}
    assert (checks["model"]["state"], checks["model"]["error"]) == ("failed", "model_incomplete")
    assert checks["model"]["detail"]["findings"][0]["file"] == "tokenizer.json"


def test_the_table_tells_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "preflight", str(tmp_path / "nothing")) == 2
    assert "failed" in capsys.readouterr().out


def test_a_wrong_list_of_gpus(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "preflight", "--gpus", "zero") == 2
    assert "write --gpus 0,1" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "indexes"), [(None, ()), ("0", (0,)), ("1, 0", (1, 0))])
def test_indexes(text: str | None, indexes: tuple[int, ...]) -> None:
    assert gpu_indexes(text) == indexes


@pytest.mark.parametrize("text", ["", "a", "0,0", "-1", "0;1"])
def test_no_indexes(text: str) -> None:
    with pytest.raises(ConfigurationError):
        gpu_indexes(text)
