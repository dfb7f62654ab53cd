"""From settings, model and GPUs to what is started."""

import asyncio
import socket
from pathlib import Path
from uuid import UUID

import pytest
from fake_nvml import FakeGpu, FakeNvml
from memory_registry import MemoryRegistry
from model_files import write_model
from scripted_python import ScriptedPython

from docmill.failures import ConfigurationError
from docmill.model_failures import ModelNotFound, NoFreeGpu, NotEnoughGpuMemory, ParallelSizeImpossible, VllmMissing
from docmill.model_servers import ServerState
from docmill.settings import ServingSettings, Settings
from flows.launches import Preparation, StartOptions, profile_key
from flows.supervision import Supervision
from serving.supervision.orphans import marked_processes
from serving.vllm import gpu_devices

GIB = 2**30


class Host:
    """A host with GPUs that are not there."""

    def __init__(self, folder: Path, registry: MemoryRegistry, gpus: list[FakeGpu], monkeypatch) -> None:
        self.folder = folder
        self.registry = registry
        seen = tuple({"name": each.name, "total_memory": each.total, "uuid": each.uuid[4:]} for each in gpus)
        kind = {"cuda": "13.0", "platform": "cuda"} if gpus else {"platform": "cpu"}
        self.python = ScriptedPython(folder / "vllm", gpus=seen, **kind)
        nvml = FakeNvml(gpus, links={(a, b): (0, 0, 10) for a in range(len(gpus)) for b in range(a + 1, len(gpus))})
        monkeypatch.setattr("flows.launches.gpu_inventory", lambda: gpu_devices.gpu_inventory(nvml, {}))
        self.serving = ServingSettings(
            python=self.python.path, models={"tiny": write_model(folder / "tiny")}, cpu_kv_cache_bytes=2**26
        )

    def settings(self, **serving) -> Settings:
        held = ServingSettings.model_validate(self.serving.model_dump() | serving)
        return Settings(data_dir=self.folder / "data", serving=held)

    async def launches(self, count: int = 1, gpus: tuple[int, ...] = (), profile: str = "tiny", **serving):
        ids = [(await self.registry.acquire(f"{profile}", "test", 60, start_on=socket.gethostname())).to_start]
        ids += await _more(self.registry, count - 1)
        told: list[str] = []

        async def tell(phase: str) -> None:
            told.append(phase)

        preparation = Preparation(self.settings(**serving), profile, ids, self.registry, gpus=gpus, tell=tell)
        return await preparation.launches()


async def _more(registry: MemoryRegistry, count: int) -> list[UUID]:
    return await registry.add_servers("another row", socket.gethostname(), count) if count else []


def gpu(number: int, *, used: int = 0, total: int = 139 * GIB) -> FakeGpu:
    return FakeGpu(f"GPU-{number}", total=total, used=used)


def value_of(command: tuple[str, ...], flag: str) -> str:
    return command[command.index(flag) + 1]


async def test_a_gpu_server_sees_its_own_gpus_alone(tmp_path, monkeypatch):
    host = Host(tmp_path, MemoryRegistry(), [gpu(0), gpu(1)], monkeypatch)
    [(server_id, launch)] = (await host.launches(tensor_parallel_size=2)).items()
    assert launch.environment == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,1"}
    assert value_of(launch.command, "--tensor-parallel-size") == "2"
    assert launch.command[1:3] == ("-m", "vllm.entrypoints.openai.api_server")
    assert launch.base_url == f"http://127.0.0.1:{value_of(launch.command, '--port')}"
    row = await host.registry.server(server_id)
    assert (row.gpus, row.tensor_parallel_size, row.served_name) == ((0, 1), 2, "tiny")
    assert row.log_path == str(launch.log_path) and row.config_hash == launch.config_hash


async def test_a_model_that_fits_one_gpu_takes_one_that_is_free(tmp_path, monkeypatch):
    registry = MemoryRegistry()
    [other] = await registry.add_servers("other", socket.gethostname(), 1)
    await registry.assign_gpus(other, [0], 1)
    host = Host(tmp_path, registry, [gpu(0), gpu(1, used=130 * GIB), gpu(2)], monkeypatch)
    [launch] = (await host.launches()).values()
    assert launch.environment["CUDA_VISIBLE_DEVICES"] == "2"


async def test_replicas_get_gpus_and_ports_of_their_own(tmp_path, monkeypatch):
    host = Host(tmp_path, MemoryRegistry(), [gpu(0), gpu(1)], monkeypatch)
    launches = list((await host.launches(2, tensor_parallel_size=1)).values())
    assert {each.environment["CUDA_VISIBLE_DEVICES"] for each in launches} == {"0", "1"}
    assert len({each.base_url for each in launches}) == len({each.log_path for each in launches}) == 2
    assert len({each.config_hash for each in launches}) == 1


async def test_gpus_that_others_hold_are_named(tmp_path, monkeypatch):
    registry = MemoryRegistry()
    [other] = await registry.add_servers("qwen2-vl-72b", socket.gethostname(), 1)
    await registry.assign_gpus(other, [0, 1], 2)
    host = Host(tmp_path, registry, [gpu(0), gpu(1)], monkeypatch)
    with pytest.raises(NoFreeGpu, match=r"qwen2-vl-72b \(starting\) holds 0,1"):
        await host.launches()


async def test_gpus_that_a_draining_server_gives_back_are_waited_for(tmp_path, monkeypatch):
    registry = MemoryRegistry()
    [other] = await registry.add_servers("other", socket.gethostname(), 1)
    await registry.assign_gpus(other, [0], 1)
    await registry.begin_drain(other)

    async def and_then_it_ends(_: float) -> None:
        await registry.enter(other, ServerState.STOPPED)

    host = Host(tmp_path, registry, [gpu(0)], monkeypatch)
    monkeypatch.setattr("flows.launches.asyncio.sleep", and_then_it_ends)
    [launch] = (await host.launches()).values()
    assert launch.environment["CUDA_VISIBLE_DEVICES"] == "0"


@pytest.mark.parametrize(
    ("gpus", "serving", "error", "told"),
    [
        ([gpu(0, used=130 * GIB)], {}, NotEnoughGpuMemory, "GiB free"),
        ([gpu(0), gpu(1), gpu(2)], {"tensor_parallel_size": 3}, ParallelSizeImpossible, "possible are"),
        ([gpu(0)], {"tensor_parallel_size": 2}, NoFreeGpu, "2"),
        ([gpu(0)], {"extra_arguments": ["--port", "1"]}, ConfigurationError, "--port"),
        ([gpu(0)], {"extra_arguments": ["--tensor_parallel_size=4"]}, ConfigurationError, "--tensor-parallel-size"),
        ([gpu(0)], {"python": Path("/nowhere/python")}, VllmMissing, "/nowhere/python"),
        ([gpu(0)], {"models": {"tiny": Path("/nowhere/tiny")}}, ModelNotFound, "/nowhere/tiny"),
        ([gpu(0)], {"host": "192.0.2.77"}, ConfigurationError, "192.0.2.77"),
    ],
)
async def test_what_does_not_work_is_named_with_its_remedy(tmp_path, monkeypatch, gpus, serving, error, told):
    host = Host(tmp_path, MemoryRegistry(), gpus, monkeypatch)
    with pytest.raises(error) as raised:
        await host.launches(**serving)
    assert told in str(raised.value) and raised.value.remedy


async def test_a_row_names_the_model_by_its_whole_path(tmp_path, monkeypatch):
    host = Host(tmp_path, MemoryRegistry(), [], monkeypatch)
    monkeypatch.chdir(tmp_path)
    [(server_id, launch)] = (await host.launches(models={"tiny": Path("tiny")})).items()
    assert value_of(launch.command, "--model") == str(tmp_path / "tiny"), "else vLLM takes it for a name on the hub"
    assert (await host.registry.server(server_id)).model == str(tmp_path / "tiny")


async def test_a_cpu_server_gets_its_cache_and_no_gpu(tmp_path, monkeypatch):
    host = Host(tmp_path, MemoryRegistry(), [], monkeypatch)
    [launch] = (await host.launches()).values()
    assert launch.environment == {"VLLM_CPU_KVCACHE_SPACE": "1"} and not launch.can_sleep
    with pytest.raises(ConfigurationError, match="one server"):
        await host.launches(2, profile="tiny")


async def test_the_end_of_a_preparation_is_in_the_row(tmp_path, monkeypatch):
    registry = MemoryRegistry()
    host = Host(tmp_path, registry, [gpu(0, used=130 * GIB)], monkeypatch)
    [server_id] = await registry.add_servers("tiny", socket.gethostname(), 1)
    with pytest.raises(NotEnoughGpuMemory):
        await Supervision(host.settings(), "tiny", [server_id], registry).run()
    row = await registry.server(server_id)
    assert (row.state, row.error_code) == (ServerState.FAILED, "not_enough_gpu_memory")


async def test_a_signal_during_the_preparation_ends_it(tmp_path, monkeypatch):
    registry = MemoryRegistry()
    host = Host(tmp_path, registry, [], monkeypatch)
    [server_id] = await registry.add_servers("tiny", socket.gethostname(), 1)
    phases = []
    supervision = Supervision(
        host.settings(), "tiny", [server_id], registry,
        on_progress=lambda _, phase, share: (phases.append(phase), supervision.drain()),
    )  # fmt: skip
    assert await supervision.run() == {server_id: ServerState.STOPPED}
    assert phases == ["preflight"]
    assert (await registry.server(server_id)).state is ServerState.STOPPED


async def test_a_stop_during_the_preparation_ends_it(tmp_path, monkeypatch):
    registry = MemoryRegistry()
    host = Host(tmp_path, registry, [], monkeypatch)
    monkeypatch.setattr("flows.supervision.HEARTBEAT_SECONDS", 0.01)
    [server_id] = await registry.add_servers("tiny", socket.gethostname(), 1)
    await registry.request_stop(server_id)
    assert await Supervision(host.settings(), "tiny", [server_id], registry).run() == {server_id: ServerState.STOPPED}


def test_what_servers_of_a_model_are_found_by(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "Qwen" / "Qwen2-VL-2B-Instruct").mkdir(parents=True)
    (tmp_path / "qwen2-vl-2b").mkdir()
    settings = Settings(serving=ServingSettings(models={"qwen2-vl-7b": Path("/gone"), "Ours": Path("/gone")}))
    for given, key in {
        "qwen2-vl-7b": "qwen2-vl-7b",
        "Qwen2-VL-7B": "qwen2-vl-7b",
        "Qwen/Qwen2-VL-72B-Instruct": "qwen2-vl-72b",
        "Ours": "Ours",
        "qwen2-vl-2b": "qwen2-vl-2b",
        "Qwen/Qwen2-VL-2B-Instruct": "qwen2-vl-2b",
        "./qwen2-vl-2b": str(tmp_path / "qwen2-vl-2b"),
        "./mine": str(tmp_path / "mine"),
        "mine": str(tmp_path / "mine"),
        "/models/on/another/host": "/models/on/another/host",
    }.items():
        assert profile_key(given, settings) == key
    with pytest.raises(ModelNotFound):
        profile_key("nonsense", settings)


def test_options_are_over_the_settings():
    settings = Settings(serving=ServingSettings(tensor_parallel_size=4, port=8000))
    assert StartOptions().over(settings) is settings
    changed = StartOptions(tensor_parallel_size=0, max_model_len=1024).over(settings).serving
    assert (changed.tensor_parallel_size, changed.port, changed.max_model_len) == (0, 8000, 1024)


async def test_replicas_run_beside_each_other_and_end_together(tmp_path, monkeypatch):
    registry = MemoryRegistry()
    host = Host(tmp_path, registry, [gpu(0), gpu(1)], monkeypatch)
    ids = await registry.add_servers("tiny", socket.gethostname(), 2)
    ready: set[UUID] = set()

    def tell(server_id: UUID, phase: str, _: float | None) -> None:
        if phase == "ready":
            ready.add(server_id)
        if len(ready) == 2:
            supervision.drain()

    supervision = Supervision(host.settings(drain_seconds=5), "tiny", ids, registry, on_progress=tell)
    async with asyncio.timeout(60):
        assert await supervision.run() == dict.fromkeys(ids, ServerState.STOPPED)
    rows = [await registry.server(each) for each in ids]
    assert {each.gpus for each in rows} == {(0,), (1,)} and len({each.base_url for each in rows}) == 2
    assert all(each.ready_at for each in rows) and host.python.starts == 2
    assert not [each.pid for each in marked_processes() if each.server_id in ids]


async def test_one_replica_is_stopped_by_itself(tmp_path, monkeypatch):
    registry = MemoryRegistry()
    host = Host(tmp_path, registry, [gpu(0), gpu(1)], monkeypatch)
    ids = await registry.add_servers("tiny", socket.gethostname(), 2)
    monkeypatch.setattr("flows.supervision.HEARTBEAT_SECONDS", 0.01)
    await registry.request_stop(ids[0])
    supervision = Supervision(
        host.settings(drain_seconds=5), "tiny", ids, registry,
        on_progress=lambda _, phase, share: supervision.drain() if phase == "ready" else None,
    )  # fmt: skip
    async with asyncio.timeout(60):
        await supervision.run()
    first, second = [await registry.server(each) for each in ids]
    assert (first.state, first.ready_at, second.state) == (ServerState.STOPPED, None, ServerState.STOPPED)
    assert second.ready_at is not None and host.python.starts == 1
