import os
import socket
from collections import namedtuple
from pathlib import Path

import pytest
from fake_nvml import FakeGpu, FakeNvml

from docmill.checks import Check
from docmill.failures import ConfigurationError
from docmill.model_failures import NoFreeGpu, NotEnoughGpuMemory, PortTaken, VllmMissing
from serving.vllm import host_checks
from serving.vllm.facts import SeenGpu, VllmFacts
from serving.vllm.gpu_devices import GpuInventory, gpu_inventory
from serving.vllm.host_checks import (
    compile_cache,
    disk_check,
    driver_check,
    gpus_check,
    host_memory_check,
    memory_check,
    platform_check,
    port_check,
    shared_memory_check,
    torch_check,
)
from serving.vllm.nccl_checks import ADVICE, nccl_check

GIB = 2**30
NONE = GpuInventory(reason="no NVIDIA driver")
Usage = namedtuple("Usage", "total used free")


def facts(cuda: str | None = "13.0", gpus: tuple[SeenGpu, ...] = ()) -> VllmFacts:
    return VllmFacts(
        python="/opt/vllm/bin/python", python_version="3.12.3", version="0.24.0", distribution="vllm", location="",
        server_module="", torch_version="2.11.0", cuda_version=cuda, platform="cuda" if cuda else "cpu",
        can_sleep=cuda is not None, gpus=gpus, architectures=frozenset(), flags=(), problems={},
    )  # fmt: skip


def inventory(
    *gpus: FakeGpu, link: tuple[int | None, int | None, int | None] = (0, 0, 50), **about: int
) -> GpuInventory:
    pairs = {(a, b): link for a in range(len(gpus)) for b in range(len(gpus))}
    return gpu_inventory(FakeNvml(list(gpus), pairs, **about), {})  # type: ignore[arg-type]


def two(**about: object) -> GpuInventory:
    return inventory(FakeGpu("GPU-a"), FakeGpu("GPU-b"), **about)  # type: ignore[arg-type]


def seen(*uuids: str, name: str = "NVIDIA H200") -> tuple[SeenGpu, ...]:
    return tuple(SeenGpu(index, name, 139 * GIB, uuid) for index, uuid in enumerate(uuids))


def state(check: Check) -> tuple[str, type | None]:
    return check.state, check.error


def test_driver() -> None:
    assert state(driver_check(two(), facts())) == ("ok", None)
    assert "CUDA up to 13.0" in driver_check(two(), facts()).found
    assert state(driver_check(NONE, facts())) == ("failed", NoFreeGpu)
    assert state(driver_check(NONE, facts(cuda=None))) == ("ok", None)
    assert state(driver_check(NONE, None)) == ("failed", NoFreeGpu)


def test_a_driver_too_old_for_torch() -> None:
    old = driver_check(two(cuda=12080), facts(cuda="13.0"))
    assert state(old) == ("failed", VllmMissing)
    assert "update the driver to one for CUDA 13" in old.remedy
    # within one major version, older drivers run newer builds
    assert driver_check(two(cuda=13000), facts(cuda="13.2")).state == "ok"


def test_platform() -> None:
    assert state(platform_check(two(), facts())) == ("ok", None)
    assert state(platform_check(NONE, facts(cuda=None))) == ("ok", None)
    assert state(platform_check(NONE, facts())) == ("failed", NoFreeGpu)
    on_gpus = platform_check(two(), facts(cuda=None))
    assert state(on_gpus) == ("warning", None)
    assert "--install cuda" in on_gpus.remedy


def test_gpus() -> None:
    both = two()
    assert state(gpus_check(both, both.devices, (), 2)) == ("ok", None)
    few = gpus_check(both, both.devices, (), 4)
    assert state(few) == ("failed", NoFreeGpu)
    assert "2 GPUs for a tensor-parallel size of 4" in few.found
    absent = gpus_check(both, both.devices[1:], (1, 7), 1)
    assert state(absent) == ("failed", NoFreeGpu)
    assert "no GPU 7 here" in absent.found
    assert "0, 1" in absent.remedy


def test_faulty_and_divided_gpus_are_warned_of() -> None:
    faulty = inventory(FakeGpu("GPU-a", ecc=3))
    assert "GPU 0: 3" in gpus_check(faulty, faulty.devices, (), 1).found
    divided = inventory(FakeGpu("GPU-a", mig=1))
    assert state(gpus_check(divided, divided.devices, (), 1)) == ("warning", None)


def test_memory() -> None:
    free = two()
    assert state(memory_check(free.devices, 0.9)) == ("ok", None)
    held = inventory(FakeGpu("GPU-a", used=100 * GIB, processes=[(os.getpid(), 99 * GIB), (2**30, None)]))
    short = memory_check(held.devices, 0.9)
    assert state(short) == ("failed", NotEnoughGpuMemory)
    assert f"(pid {os.getpid()}) 99.0 GiB" in short.found
    assert f"? (pid {2**30})" in short.found
    assert "serving.gpu_memory_utilization to 0.26" in short.remedy
    full = inventory(FakeGpu("GPU-a", used=138 * GIB))
    assert "gpu_memory_utilization to" not in memory_check(full.devices, 0.9).remedy
    unknown = inventory(FakeGpu("GPU-a", total=0))
    assert memory_check(unknown.devices, 0.9).state == "ok"


def test_torch_sees_what_the_driver_sees() -> None:
    both = two()
    assert state(torch_check(both, facts(gpus=seen("a", "b")))) == ("ok", None)
    assert state(torch_check(both, facts(gpus=seen("", "")))) == ("ok", None)
    assert state(torch_check(both, facts(gpus=seen("a")))) == ("failed", NoFreeGpu)
    assert state(torch_check(both, facts())) == ("failed", VllmMissing)
    assert state(torch_check(both, facts(gpus=seen("a", "c")))) == ("failed", NoFreeGpu)
    assert state(torch_check(NONE, facts(cuda=None))) == ("ok", None)


def test_torch_may_count_in_another_order() -> None:
    mixed = inventory(FakeGpu("GPU-a", name="L4"), FakeGpu("GPU-b"))
    other = (SeenGpu(0, "NVIDIA H200", 1, "b"), SeenGpu(1, "L4", 1, "a"))
    check = torch_check(mixed, facts(gpus=other))
    assert state(check) == ("warning", None)
    assert "PCI_BUS_ID" in check.remedy


def test_a_free_port_and_none_at_all() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert state(port_check("127.0.0.1", port)) == ("ok", None)
    assert state(port_check("127.0.0.1", 0)) == ("ok", None)


@pytest.mark.parametrize("listens_on", ["127.0.0.1", "0.0.0.0"])
def test_a_taken_port(listens_on: str) -> None:
    with socket.socket() as server:
        # vLLM sets both on its own socket, which must not let a second one in
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((listens_on, 0))
        server.listen()
        check = port_check("127.0.0.1", server.getsockname()[1])
    assert state(check) == ("failed", PortTaken)
    assert f"(pid {os.getpid()})" in check.found


def test_an_address_of_another_host() -> None:
    assert state(port_check("192.0.2.1", 8000)) == ("failed", ConfigurationError)
    assert state(port_check("no such host", 8000)) == ("failed", ConfigurationError)


def test_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "not" / "yet"
    monkeypatch.setattr(host_checks.shutil, "disk_usage", lambda place: Usage(10 * GIB, 0, 9 * GIB))
    assert disk_check([missing, tmp_path]).state == "ok"
    monkeypatch.setattr(host_checks.shutil, "disk_usage", lambda place: Usage(10 * GIB, 0, GIB))
    assert disk_check([missing]).state == "warning"


def test_shared_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_checks.shutil, "disk_usage", lambda place: Usage(64 * 2**20, 0, 60 * 2**20))
    assert shared_memory_check(1, tmp_path).state == "ok"
    short = shared_memory_check(2, tmp_path)
    assert short.state == "warning"
    assert "--shm-size" in short.remedy
    assert shared_memory_check(2, tmp_path / "none").state == "ok"


def test_host_memory() -> None:
    assert state(host_memory_check(None, GIB // 4)) == ("ok", None)
    assert state(host_memory_check(None, 2**50)) == ("failed", NotEnoughGpuMemory)


def test_compile_cache() -> None:
    assert compile_cache({"VLLM_CACHE_ROOT": "/fast/cache"}) == Path("/fast/cache")
    assert compile_cache({"XDG_CACHE_HOME": "/x"}) == Path("/x/vllm")
    assert compile_cache({}) == Path.home() / ".cache" / "vllm"


# --- NCCL ---------------------------------------------------------------------------------------------------------

PCIE, BLOCKED = (0, 1, 30), (1, 1, 50)


def nccl(found: GpuInventory, size: int = 2, **environment: str) -> Check:
    return nccl_check(found, found.devices, size, environment)


def test_one_gpu_needs_no_nccl() -> None:
    assert nccl(two(), 1, NCCL_P2P_DISABLE="1").state == "ok"


def test_nvlink() -> None:
    check = nccl(two())
    assert (check.state, check.found) == ("ok", "all pairs over NVLink")
    assert "NCCL_DEBUG=INFO" in check.remedy
    assert check.detail["variables"] == ADVICE


def test_pcie_advises_replicas() -> None:
    check = nccl(two(link=PCIE))
    assert (check.state, check.found) == ("ok", "all pairs over the PCIe host bridge")
    assert "replicas" in check.remedy


def test_gpus_that_cannot_reach_each_other() -> None:
    check = nccl(two(link=BLOCKED))
    assert check.state == "warning"
    assert "GPUs 0-1 cannot read each other's memory" in check.found
    assert "NCCL_P2P_DISABLE=1" in check.remedy
    assert nccl(two(link=BLOCKED), NCCL_P2P_DISABLE="1").state == "ok"


def test_variables_that_get_in_the_way() -> None:
    check = nccl(two(), NCCL_P2P_DISABLE="1", NCCL_DEBUG="INFO")
    assert check.state == "warning"
    assert "NCCL_P2P_DISABLE=1, NCCL_DEBUG=INFO" in check.found
    assert nccl(two(), NCCL_P2P_DISABLE="0", NCCL_IB_DISABLE="1").state == "ok"
    assert nccl(two(link=PCIE), NCCL_SHM_DISABLE="1").state == "warning"
    assert nccl(two(), NCCL_SHM_DISABLE="1").state == "ok"


def test_unknown_paths() -> None:
    assert "an unknown path" in nccl(two(link=(None, None, None))).found
    three = inventory(FakeGpu("GPU-a"))
    assert "not known" in nccl_check(three, three.devices, 2, {}).found
