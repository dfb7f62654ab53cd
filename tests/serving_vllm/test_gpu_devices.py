import pytest
from fake_nvml import FakeGpu, FakeNvml, NVMLError_LibraryNotFound

from serving.vllm.gpu_devices import GpuLink, GpuProcess, gpu_devices, gpu_inventory, visible_indexes

GIB = 2**30
NVLINK, SYSTEM, NO_PEERS = (0, 0, 50), (0, 1, 50), (1, 1, None)


def two(**links: tuple[int | None, int | None, int | None]) -> FakeNvml:
    pair = links.get("pair", NVLINK)
    return FakeNvml([FakeGpu("GPU-aaaa"), FakeGpu("GPU-bbbb")], {(0, 1): pair, (1, 0): pair})


def test_two_linked_gpus() -> None:
    nvml = two()
    nvml.gpus[1] = FakeGpu("GPU-bbbb", used=9 * GIB, processes=[(41, 8 * GIB), (42, None)])
    found = gpu_inventory(nvml, {})
    assert (found.driver, found.cuda_version, found.hidden, found.reason) == ("580.95.05", (13, 0), 0, "")
    assert [(gpu.index, gpu.uuid, gpu.name) for gpu in found.devices] == [
        (0, "GPU-aaaa", "NVIDIA H200"),
        (1, "GPU-bbbb", "NVIDIA H200"),
    ]
    second = found.devices[1]
    assert (second.total_bytes, second.used_bytes, second.free_bytes) == (139 * GIB, 9 * GIB, 130 * GIB)
    assert second.processes == (GpuProcess(41, 8 * GIB), GpuProcess(42, None))
    assert (second.compute_capability, second.ecc_errors, second.mig) == ((9, 0), 0, False)
    assert found.links == (GpuLink(0, 1, "nvlink", True),)
    assert nvml.open == 0


@pytest.mark.parametrize(
    ("pair", "kind", "peer_access"),
    [
        (SYSTEM, "system", True),
        ((0, 1, 10), "switch", True),
        ((1, 1, 30), "host-bridge", False),
        ((1, 1, 40), "node", False),
        ((None, None, None), "unknown", None),
    ],
)
def test_links_without_nvlink(pair: tuple[int, int, int], kind: str, peer_access: bool | None) -> None:
    (link,) = gpu_inventory(two(pair=pair), {}).links
    assert (link.kind, link.peer_access) == (kind, peer_access)


def test_a_gpu_that_answers_little() -> None:
    nvml = FakeNvml([FakeGpu("GPU-a", name=b"Orin", total=0, ecc=None, mig=None, capability=None)], driver=b"540.3")
    found = gpu_inventory(nvml, {})
    (gpu,) = found.devices
    assert (gpu.name, gpu.total_bytes, gpu.ecc_errors, gpu.mig, gpu.compute_capability) == (
        "Orin",
        0,
        None,
        False,
        None,
    )
    assert found.driver == "540.3"


def test_without_a_driver_there_are_none_and_a_reason() -> None:
    found = gpu_inventory(FakeNvml([], start_error=NVMLError_LibraryNotFound()), {})
    assert found.devices == ()
    assert "no NVIDIA driver" in found.reason


def test_a_driver_that_breaks_while_it_is_asked() -> None:
    nvml = two()
    nvml.lost = True
    found = gpu_inventory(nvml, {})
    assert found.devices == ()
    assert "GpuIsLost" in found.reason
    assert nvml.open == 0


def test_a_driver_without_gpus() -> None:
    assert gpu_inventory(FakeNvml([]), {}).reason == "the NVIDIA driver sees no GPU"


def test_the_real_module_raises_nothing() -> None:
    assert isinstance(gpu_devices(), list)


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        (None, [0, 1, 2]),
        ("", []),
        ("1", [1]),
        ("2,0", [2, 0]),
        ("GPU-bb", [1]),
        ("GPU-b,0", []),  # ambiguous: hides itself and what follows
        ("0,-1,1", [0]),
        ("0,7,1", [0]),
        ("1,1", []),
        ("0, GPU-bbbb", [0, 1]),
    ],
)
def test_cuda_visible_devices_is_read_as_cuda_reads_it(chosen: str | None, left: list[int]) -> None:
    assert visible_indexes({0: "GPU-aaaa", 1: "GPU-bbbb", 2: "GPU-bccc"}, chosen) == left


def test_hidden_gpus_are_counted_and_said() -> None:
    assert gpu_inventory(two(), {"CUDA_VISIBLE_DEVICES": "1"}).hidden == 1
    assert gpu_inventory(two(), {"CUDA_VISIBLE_DEVICES": ""}).reason == "CUDA_VISIBLE_DEVICES hides all 2 GPUs"
