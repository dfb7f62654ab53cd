"""A module like pynvml over GPUs that a test describes."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


class NVMLError(Exception):
    """As pynvml's."""


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801
    """As pynvml's."""


class NVMLError_NotSupported(NVMLError):  # noqa: N801
    """As pynvml's."""


class NVMLError_GpuIsLost(NVMLError):  # noqa: N801
    """As pynvml's."""


@dataclass
class FakeGpu:
    """What one GPU answers; None: it has no answer to that."""

    uuid: str
    name: Any = "NVIDIA H200"
    total: int = 139 * 2**30
    used: int = 0
    ecc: int | None = 0
    mig: int | None = 0
    capability: tuple[int, int] | None = (9, 0)
    processes: list[tuple[int, int | None]] = field(default_factory=list)


@dataclass
class FakeNvml:
    """Answers as NVML would; ``links`` maps pairs of indexes to (P2P status of reads, of NVLink, common ancestor)."""

    gpus: list[FakeGpu]
    links: dict[tuple[int, int], tuple[int | None, int | None, int | None]] = field(default_factory=dict)
    driver: Any = "580.95.05"
    cuda: int = 13000
    start_error: Exception | None = None
    lost: bool = False
    open: int = 0

    NVMLError = NVMLError
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
    NVML_VOLATILE_ECC = 0
    NVML_P2P_CAPS_INDEX_READ = 0
    NVML_P2P_CAPS_INDEX_NVLINK = 2
    NVML_P2P_STATUS_OK = 0
    NVML_TOPOLOGY_INTERNAL = 0
    NVML_TOPOLOGY_SINGLE = 10
    NVML_TOPOLOGY_MULTIPLE = 20
    NVML_TOPOLOGY_HOSTBRIDGE = 30
    NVML_TOPOLOGY_NODE = 40
    NVML_TOPOLOGY_SYSTEM = 50

    def nvmlInit(self) -> None:  # noqa: N802
        if self.start_error is not None:
            raise self.start_error
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> Any:  # noqa: N802
        return self.driver

    def nvmlSystemGetCudaDriverVersion(self) -> int:  # noqa: N802
        return self.cuda

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        if self.lost:
            raise NVMLError_GpuIsLost
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str:  # noqa: N802
        return self.gpus[handle].uuid

    def nvmlDeviceGetName(self, handle: int) -> Any:  # noqa: N802
        return self.gpus[handle].name

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802
        gpu = self.gpus[handle]
        if not gpu.total:
            raise NVMLError_NotSupported
        return SimpleNamespace(total=gpu.total, used=gpu.used, free=gpu.total - gpu.used)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:  # noqa: N802
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in self.gpus[handle].processes]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: int) -> list[SimpleNamespace]:  # noqa: N802
        raise NVMLError_NotSupported

    def nvmlDeviceGetTotalEccErrors(self, handle: int, kind: int, counter: int) -> int:  # noqa: N802
        return self._known(self.gpus[handle].ecc)

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> tuple[int, int]:  # noqa: N802
        return self._known(self.gpus[handle].capability)

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:  # noqa: N802
        return [self._known(self.gpus[handle].mig), 0]

    def nvmlDeviceGetP2PStatus(self, first: int, second: int, index: int) -> int:  # noqa: N802
        reads, linked, _ = self.links[first, second]
        return self._known(reads if index == self.NVML_P2P_CAPS_INDEX_READ else linked)

    def nvmlDeviceGetTopologyCommonAncestor(self, first: int, second: int) -> int:  # noqa: N802
        return self._known(self.links[first, second][2])

    def _known(self, value: Any) -> Any:
        if value is None:
            raise NVMLError_NotSupported
        return value
