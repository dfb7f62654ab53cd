import socket
from pathlib import Path
from typing import Any

import pytest
from fake_nvml import FakeGpu, FakeNvml
from model_files import CONFIG, SHARDS, write_model
from vllm_package import write_vllm

from docmill.checks import Check
from docmill.failures import ConfigurationError, DocmillError
from docmill.model_failures import (
    ModelIncomplete,
    ModelNotFound,
    NoFreeGpu,
    NotAVisionModel,
    NotEnoughGpuMemory,
    ParallelSizeImpossible,
    PortTaken,
    UnsupportedFlag,
    UnsupportedModel,
    VllmMissing,
)
from docmill.settings import ServingSettings, Settings
from serving.vllm.gpu_devices import GpuInventory, gpu_inventory
from serving.vllm.intended import cached_snapshot, gpu_kind
from serving.vllm.model_checks import served_name_check
from serving.vllm.preflight import choose_gpus, preflight, require

GIB = 2**30
NO_GPUS = GpuInventory(reason="no NVIDIA driver")
OPTIONS = ("--quantization", "--block-size")
H200 = {"name": "NVIDIA H200", "total_memory": 139 * GIB}


def gpus(*used_gib: int) -> GpuInventory:
    held = [FakeGpu(f"GPU-{index}", used=each * GIB) for index, each in enumerate(used_gib)]
    pairs = {(a, b): (0, 0, 50) for a in range(len(held)) for b in range(len(held))}
    return gpu_inventory(FakeNvml(held, pairs), {})  # type: ignore[arg-type]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "qwen")


@pytest.fixture
def on_cpu(tmp_path: Path) -> Path:
    return write_vllm(tmp_path / "site", options=OPTIONS)


@pytest.fixture
def on_gpus(tmp_path: Path) -> Path:
    seen = tuple({**H200, "uuid": str(index)} for index in range(2))
    return write_vllm(tmp_path / "site", version="0.24.0", cuda="13.0", platform="cuda", gpus=seen, options=OPTIONS)


def settings(tmp_path: Path, python: Path | None, **serving: Any) -> Settings:
    serving.setdefault("cpu_kv_cache_bytes", 2**26)
    return Settings(data_dir=tmp_path / "data", serving=ServingSettings(python=python, **serving))


async def failed(tmp_path: Path, python: Path | None, model: Path | str | None, **more: Any) -> DocmillError:
    """The error that a start would end with."""
    serving = more.pop("serving", {})
    more.setdefault("inventory", NO_GPUS)
    checks = await preflight(settings(tmp_path, python, **serving), str(model) if model else None, **more)
    with pytest.raises(DocmillError) as raised:
        require(checks)
    assert raised.value.remedy
    return raised.value


async def test_all_is_well_on_a_cpu(tmp_path: Path, on_cpu: Path, model: Path) -> None:
    checks = await preflight(settings(tmp_path, on_cpu), str(model), inventory=NO_GPUS)
    assert [each for each in checks if each.state != "ok"] == []
    assert [each.what for each in checks] == [
        "vllm", "model", "architecture", "parallel size", "platform", "memory", "flags", "served name",
        "shared memory", "port", "disk",
    ]  # fmt: skip
    require(checks)


async def test_all_is_well_on_two_gpus(tmp_path: Path, on_gpus: Path, model: Path) -> None:
    checks = await preflight(
        settings(tmp_path, on_gpus), str(model), tensor_parallel_size=2, inventory=gpus(0, 0), max_model_len=2048
    )
    assert [each for each in checks if each.state == "failed"] == []
    assert [each.what for each in checks] == [
        "vllm", "model", "architecture", "parallel size", "driver", "platform", "gpus", "gpu memory", "torch", "plan",
        "nccl", "flags", "served name", "shared memory", "port", "disk",
    ]  # fmt: skip
    require(checks)


async def test_without_a_model_the_host_is_checked(tmp_path: Path, on_cpu: Path) -> None:
    checks = await preflight(settings(tmp_path, on_cpu), inventory=NO_GPUS)
    require(checks)
    assert "model" not in {each.what for each in checks}


async def test_no_vllm(tmp_path: Path, model: Path) -> None:
    assert type(await failed(tmp_path, None, model)) is VllmMissing
    assert type(await failed(tmp_path, tmp_path / "nothing", model)) is VllmMissing


async def test_a_vllm_that_does_not_import(tmp_path: Path, model: Path) -> None:
    python = write_vllm(tmp_path / "site", broken="raise ImportError('libcudart.so.13: cannot open')")
    error = await failed(tmp_path, python, model)
    assert type(error) is VllmMissing
    assert "libcudart.so.13" in error.message


async def test_a_vllm_that_is_too_old(tmp_path: Path, model: Path) -> None:
    python = write_vllm(tmp_path / "site", version="0.11.0", options=OPTIONS)
    assert type(await failed(tmp_path, python, model)) is VllmMissing


async def test_a_vllm_that_is_newer_than_any_that_was_tried(tmp_path: Path) -> None:
    python = write_vllm(tmp_path / "site", version="0.34.0")
    (vllm, *_) = await preflight(settings(tmp_path, python), inventory=NO_GPUS)
    assert (vllm.what, vllm.state) == ("vllm", "warning")


async def test_a_model_path_that_does_not_exist(tmp_path: Path, on_cpu: Path) -> None:
    assert type(await failed(tmp_path, on_cpu, tmp_path / "nothing")) is ModelNotFound
    assert type(await failed(tmp_path, on_cpu, "qwen9-vl")) is ModelNotFound


async def test_a_profile_without_a_folder(tmp_path: Path, on_cpu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    error = await failed(tmp_path, on_cpu, "qwen2-vl-2b")
    assert type(error) is ModelNotFound
    assert "[serving.models]" in error.remedy


async def test_a_truncated_shard(tmp_path: Path, on_cpu: Path, model: Path) -> None:
    (model / SHARDS[0]).write_bytes((model / SHARDS[0]).read_bytes()[:-1])
    error = await failed(tmp_path, on_cpu, model)
    assert type(error) is ModelIncomplete
    assert SHARDS[0] in error.message


async def test_a_config_without_vision(tmp_path: Path, on_cpu: Path) -> None:
    text = {name: held for name, held in CONFIG.items() if name != "vision_config"}
    assert type(await failed(tmp_path, on_cpu, write_model(tmp_path / "text", text))) is NotAVisionModel


async def test_an_architecture_that_this_vllm_does_not_know(tmp_path: Path, model: Path) -> None:
    python = write_vllm(tmp_path / "site", architectures=("LlamaForCausalLM",), options=OPTIONS)
    assert type(await failed(tmp_path, python, model)) is UnsupportedModel


async def test_a_size_that_does_not_divide(tmp_path: Path, on_gpus: Path, model: Path) -> None:
    error = await failed(tmp_path, on_gpus, model, tensor_parallel_size=3, inventory=gpus(0, 0, 0))
    assert type(error) is ParallelSizeImpossible
    assert "1, 2" in error.remedy


async def test_a_port_that_is_taken(tmp_path: Path, on_cpu: Path, model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        error = await failed(tmp_path, on_cpu, model, port=server.getsockname()[1])
    assert type(error) is PortTaken


async def test_memory_that_others_hold(tmp_path: Path, on_gpus: Path, model: Path) -> None:
    error = await failed(tmp_path, on_gpus, model, inventory=gpus(100, 100))
    assert type(error) is NotEnoughGpuMemory
    # of two, the free one is taken
    checks = await preflight(settings(tmp_path, on_gpus), str(model), inventory=gpus(100, 0), max_model_len=2048)
    require(checks)
    assert next(each for each in checks if each.what == "gpus").found == "1: NVIDIA H200"
    error = await failed(tmp_path, on_gpus, model, inventory=gpus(100, 0), gpus=(0,))
    assert type(error) is NotEnoughGpuMemory


async def test_a_model_that_does_not_fit(tmp_path: Path, on_gpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = {**CONFIG, "num_hidden_layers": 400, "hidden_size": 8192, "intermediate_size": 32768,
             "num_attention_heads": 64, "num_key_value_heads": 64}  # fmt: skip
    error = await failed(tmp_path, on_gpus, write_model(tmp_path / "large", large), inventory=gpus(0, 0))
    assert type(error) is NotEnoughGpuMemory
    assert "weights" in error.message


async def test_fewer_gpus_than_asked_for(tmp_path: Path, on_gpus: Path, model: Path) -> None:
    assert type(await failed(tmp_path, on_gpus, model, replicas=3, inventory=gpus(0, 0))) is NoFreeGpu
    assert type(await failed(tmp_path, on_gpus, model, gpus=(5,), inventory=gpus(0, 0))) is NoFreeGpu
    assert type(await failed(tmp_path, on_gpus, model, inventory=NO_GPUS)) is NoFreeGpu


async def test_a_flag_that_is_gone(tmp_path: Path, on_cpu: Path, model: Path) -> None:
    error = await failed(tmp_path, on_cpu, model, serving={"extra_arguments": ("--swap-space", "4")})
    assert type(error) is UnsupportedFlag
    assert "--swap-space: leave it out" in error.remedy


async def test_another_served_name(tmp_path: Path, on_cpu: Path, model: Path) -> None:
    extra = ("--served-model-name", "other")
    assert type(await failed(tmp_path, on_cpu, model, serving={"extra_arguments": extra})) is ConfigurationError


async def test_dummy_weights_need_none(tmp_path: Path, on_cpu: Path, model: Path) -> None:
    for name in (*SHARDS, "model.safetensors.index.json"):
        (model / name).unlink()
    assert type(await failed(tmp_path, on_cpu, model)) is ModelIncomplete
    serving = settings(tmp_path, on_cpu, extra_arguments=("--load-format", "dummy"))
    require(await preflight(serving, str(model), inventory=NO_GPUS))


async def test_sums_are_verified_when_asked(tmp_path: Path, on_cpu: Path, model: Path) -> None:
    (model / "SHA256SUMS").write_text(f"{'0' * 64}  {SHARDS[0]}\n")
    require(await preflight(settings(tmp_path, on_cpu), str(model), inventory=NO_GPUS))
    assert type(await failed(tmp_path, on_cpu, model, verify=True)) is ModelIncomplete


async def test_a_cpu_build_on_a_host_with_gpus_is_a_warning(tmp_path: Path, on_cpu: Path, model: Path) -> None:
    checks = await preflight(settings(tmp_path, on_cpu), str(model), inventory=gpus(0))
    require(checks)
    assert [each.what for each in checks if each.state == "warning"] == ["platform"]


async def test_servers_that_others_run_are_mentioned(tmp_path: Path, on_cpu: Path, model: Path) -> None:
    attached = settings(tmp_path, on_cpu, base_urls=("http://gpu1:8000",))
    checks = await preflight(attached, str(model), inventory=NO_GPUS)
    require(checks)
    assert "nothing is started" in next(each for each in checks if each.what == "attached").found


def test_the_first_failure_is_raised_and_the_others_are_told() -> None:
    checks = [
        Check("a", "ok", "fine"),
        Check("b", "failed", "broken", "mend it", PortTaken, {"port": 1}),
        Check("c", "failed", "worse", "mend that"),
    ]
    with pytest.raises(PortTaken, match="b: broken") as raised:
        require(checks)
    assert raised.value.remedy == "mend it"
    assert raised.value.detail == {"port": 1, "others": ["c: worse"]}
    with pytest.raises(ConfigurationError):
        require(checks[2:])
    require(checks[:1])


def test_gpus_with_room_come_first() -> None:
    found = gpus(100, 0, 0).devices
    assert [each.index for each in choose_gpus(found, 0.9)] == [1, 2, 0]
    assert [each.index for each in choose_gpus(found, 0.9, (0, 2))] == [2, 0]


def test_a_gpu_as_the_planner_wants_it() -> None:
    (device,) = gpus(0).devices
    kind = gpu_kind(device)
    assert (kind.name, kind.fp8, kind.fp4) == ("H200", True, False)
    assert 0.99 * device.total_bytes < kind.memory_bytes < device.total_bytes


def test_the_hubs_own_cache(tmp_path: Path) -> None:
    place = tmp_path / "hub" / "models--Qwen--Qwen2-VL-2B-Instruct"
    environment = {"HF_HOME": str(tmp_path)}
    assert cached_snapshot("Qwen/Qwen2-VL-2B-Instruct", environment) is None
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("abc")
    assert cached_snapshot("Qwen/Qwen2-VL-2B-Instruct", environment) is None
    (place / "snapshots" / "abc").mkdir(parents=True)
    assert cached_snapshot("Qwen/Qwen2-VL-2B-Instruct", environment) == place / "snapshots" / "abc"
    assert cached_snapshot("Qwen/Qwen2-VL-2B-Instruct", {"HF_HUB_CACHE": str(tmp_path / "hub")}) is not None


@pytest.mark.parametrize("name", ["", "with blank", "a\nb", "x" * 201])
def test_served_names_that_requests_cannot_use(name: str) -> None:
    assert served_name_check(name, ()).state == "failed"


def test_the_last_served_name_counts() -> None:
    assert served_name_check("a", ("--served-model-name", "b", "--served_model_name=a")).state == "ok"
    assert served_name_check("b", ("--served-model-name", "a", "b", "--port", "1")).state == "ok"


async def test_a_vllm_that_could_not_say_all_is_a_warning(tmp_path: Path, on_cpu: Path) -> None:
    (tmp_path / "site" / "vllm" / "model_executor" / "models" / "registry.py").write_text("raise OSError('no')")
    (vllm, *_) = await preflight(settings(tmp_path, on_cpu), inventory=NO_GPUS)
    assert vllm.state == "warning"
    assert "architectures: OSError: no" in vllm.found


@pytest.mark.parametrize("flag", ["--port=1", "--served_model_name", "--help", "-h"])
async def test_flags_that_are_not_the_users_are_refused(tmp_path, model, on_cpu, flag):
    error = await failed(tmp_path, on_cpu, model, serving={"extra_arguments": (flag,)})
    assert isinstance(error, ConfigurationError) and "leave" in error.remedy


async def test_a_context_that_the_model_was_not_made_for_is_told(tmp_path, model, on_cpu):
    long, usual = [
        {each.what: each for each in await preflight(settings(tmp_path, on_cpu), str(model), inventory=NO_GPUS, **more)}
        for more in ({"max_model_len": 10**9}, {})
    ]
    assert long["context"].state == "warning" and "1,000,000,000" in long["context"].found
    assert "context" not in usual
