"""``docmill plan``."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from console import main
from docmill.models.naming import profile_names
from serving.vllm import gpu_devices
from serving.vllm.gpu_devices import GpuDevice, GpuInventory

Run = Callable[..., tuple[int, str, str]]
QWEN2_VL_2B = {
    "architectures": ["Qwen2VLForConditionalGeneration"], "hidden_size": 1536, "intermediate_size": 8960,
    "max_position_embeddings": 32768, "num_attention_heads": 12, "num_hidden_layers": 28, "num_key_value_heads": 2,
    "tie_word_embeddings": True, "vocab_size": 151936,
    "vision_config": {"depth": 32, "embed_dim": 1280, "hidden_size": 1536, "mlp_ratio": 4, "num_heads": 16},
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Exit code, stdout and stderr of ``docmill plan …`` on a terminal of 80 columns without GPUs and settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv("DOCMILL_DATA_DIR", str(tmp_path / "data"))

    def done(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["docmill", "plan", *arguments])
        with pytest.raises(SystemExit) as ended:
            main.main()
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return done


def facts(run: Run, *arguments: str) -> dict[str, Any]:
    code, out, _ = run(*arguments, "--json")
    assert code == 0
    found = json.loads(out)
    assert isinstance(found, dict)
    return found


def test_a_model_that_fits(run: Run) -> None:
    code, out, _ = run("qwen2-vl-72b", "--gpus", "2xH200")
    assert code == 0
    head, _, command = out.partition("\n\n")
    assert "qwen2-vl-72b (73.4 billion parameters) on 2 x H200: fits" in head
    assert all(len(line) <= 80 for line in head.splitlines())
    assert "1 server, tensor parallel 2" in head
    words = shlex.split(command.replace("\\\n", " "))
    assert words[1:3] == ["-m", "vllm.entrypoints.openai.api_server"]
    assert json.loads(words[words.index("--limit-mm-per-prompt") + 1]) == {"image": 1, "video": 0}


def test_the_same_for_programs(run: Run) -> None:
    found = facts(run, "qwen2-vl-7b", "--gpus", "8xH100-80GB", "--page", "1008x1288")
    assert (found["fits"], found["tensor_parallel_size"], found["replicas"]) == (True, 1, 8)
    assert found["possible_tensor_parallel_sizes"] == [1, 2, 4]
    assert found["page"]["visual_tokens"] == 36 * 46 + 2
    assert found["kv_cache_tokens"] % found["block_tokens"] == 0
    assert "--served-model-name qwen2-vl-7b" in found["command"]


def test_a_model_that_does_not_fit_is_told_what_would_and_no_command(run: Run) -> None:
    code, out, _ = run("qwen2-vl-72b", "--gpus", "H200")
    assert code == 0
    assert "does not fit" in out
    assert out.count("would fit") >= 3
    assert "api_server" not in out
    assert facts(run, "qwen2-vl-72b", "--gpus", "H200")["command"] is None


def test_options_change_the_plan(run: Run) -> None:
    plain = facts(run, "qwen2-vl-7b", "--gpus", "4xL4")
    assert facts(run, "qwen2-vl-7b", "--gpus", "4xL4", "--max-model-len", "4096")["max_model_len"] == 4096
    assert facts(run, "qwen2-vl-7b", "--gpus", "4xL4", "--tensor-parallel-size", "4")["tensor_parallel_size"] == 4
    assert facts(run, "qwen2-vl-7b", "--gpus", "4xL4", "--quantization", "awq")["profile"] == "qwen2-vl-7b-awq"
    many = facts(run, "qwen2-vl-7b", "--gpus", "4xL4", "--concurrency", "60")
    assert many["tensor_parallel_size"] > plain["tensor_parallel_size"]
    online = facts(run, "qwen2-vl-7b", "--gpus", "4xL4", "--quantization", "fp8")
    assert "--quantization fp8" in online["command"]


def test_settings_are_in_force(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(QWEN2_VL_2B), encoding="utf-8")
    text = '[serving]\nprofile = "forms"\ngpu_memory_utilization = 0.5\nmax_num_seqs = 4\n[serving.models]\n'
    text += f'forms = "{folder}"\n'
    (tmp_path / "docmill.toml").write_text(text, encoding="utf-8")
    found = facts(run, "--gpus", "H200")
    assert (found["profile"], found["pages_at_once"]) == ("forms", 4)
    assert f"--model {folder}" in found["command"]
    assert "--gpu-memory-utilization 0.5" in found["command"]


def test_a_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(QWEN2_VL_2B), encoding="utf-8")
    assert facts(run, str(tmp_path), "--gpus", "1x24GB")["profile"] == "qwen2-vl-2b"


def test_this_machines_gpus_are_planned_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    mib = 2**20
    sizes = (143_771 * mib, 143_771 * mib)
    devices = tuple(
        GpuDevice(number, f"GPU-{number}", "NVIDIA H200", total, total, 0, compute_capability=(9, 0))
        for number, total in enumerate(sizes)
    )
    monkeypatch.setattr(gpu_devices, "gpu_inventory", lambda: GpuInventory(devices))
    found = facts(run, "qwen2-vl-72b")
    assert (found["gpu"], found["gpu_count"], found["tensor_parallel_size"]) == ("H200", 2, 2)
    assert found["kv_cache_tokens"] == pytest.approx(347_152, rel=0.02)
    odd = GpuDevice(2, "GPU-2", "NVIDIA L4", 23_034 * mib, 23_034 * mib, 0, compute_capability=(8, 9))
    monkeypatch.setattr(gpu_devices, "gpu_inventory", lambda: GpuInventory((*devices, odd)))
    assert facts(run, "qwen2-vl-2b")["gpu"] == "L4"  # one kind is planned for: the smallest, which all can stand for


def test_notes_and_warnings_are_printed(run: Run) -> None:
    _, out, _ = run("minimax-m3", "--gpus", "9xH200", "--max-model-len", "4096")
    told = " ".join(out.split())
    assert "mind a page of 1654 x 2339 takes" in told
    assert "mind 1 of 9 GPUs stay idle" in told
    assert "note how it writes boxes is not published" in told


def test_the_list(run: Run) -> None:
    code, out, _ = run("--list")
    assert code == 0
    assert all(name in out for name in profile_names())
    assert all(len(line.rstrip()) <= 80 for line in out.splitlines())
    _, out, _ = run("--list", "--json")
    assert [each["profile"] for each in json.loads(out)] == profile_names()


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("qwen2-vl-7b",), 2, "--gpus"),
        (("qwen2-vl-7b", "--gpus", "2xFOO"), 2, "no GPU 'FOO' is known"),
        (("qwen2-vl-8b", "--gpus", "H200"), 4, "did you mean"),
        (("/nowhere/model", "--gpus", "H200"), 4, "no model folder"),
        (("qwen2-vl-7b", "--gpus", "H200", "--page", "A4"), 2, "write it as 1654x2339"),
        (("qwen2-vl-7b", "--gpus", "H200", "--page", "10x3000"), 2, "more than 200 times"),
        (("qwen2-vl-7b", "--gpus", "4xH200", "--tensor-parallel-size", "3"), 2, "28 attention heads"),
        (("qwen2-vl-7b", "--gpus", "H200", "--quantization", "int3"), 2, "there are awq"),
    ],
)
def test_errors_name_their_remedy(run: Run, arguments: tuple[str, ...], code: int, told: str) -> None:
    ended, out, err = run(*arguments)
    assert (ended, out) == (code, "")
    assert told in " ".join(err.split())
    assert "what to do" in err
