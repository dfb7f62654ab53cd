"""The GPUs of this host, asked from the driver (NVML): quick, and without touching their memory."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, TypeVar

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a GPU; ``used_bytes`` is None where the driver does not tell (containers)."""

    pid: int
    used_bytes: int | None


@dataclass(frozen=True, slots=True)
class GpuDevice:
    """One GPU.

    Attributes:
        index: NVML's, which is the order on the PCI bus: ``CUDA_VISIBLE_DEVICES`` means the same with
            ``CUDA_DEVICE_ORDER=PCI_BUS_ID``.
        total_bytes, free_bytes, used_bytes: of its memory.
        compute_capability: such as (9, 0).
        ecc_errors: uncorrected since the driver was loaded; None where ECC is off.
        mig: whether it is cut into MIG instances.
        processes: that hold its memory, as far as they can be seen from here.
    """

    index: int
    uuid: str
    name: str
    total_bytes: int
    free_bytes: int
    used_bytes: int
    compute_capability: tuple[int, int] | None = None
    ecc_errors: int | None = None
    mig: bool = False
    processes: tuple[GpuProcess, ...] = ()


@dataclass(frozen=True, slots=True)
class GpuLink:
    """How two GPUs reach each other.

    Attributes:
        first, second: indexes.
        kind: ``nvlink``, or over what their PCI paths meet: ``switch``, ``host-bridge``, ``node`` (one NUMA node),
            ``system`` (between sockets), ``unknown``.
        peer_access: whether one may read the other's memory; None where the driver does not tell.
    """

    first: int
    second: int
    kind: Literal["nvlink", "switch", "host-bridge", "node", "system", "unknown"]
    peer_access: bool | None


@dataclass(frozen=True, slots=True)
class GpuInventory:
    """All of it.

    Attributes:
        reason: why there are none; empty where there are.
        hidden: how many GPUs CUDA_VISIBLE_DEVICES hides.
        driver: version of the driver; None without one.
        cuda_version: the newest CUDA that the driver supports, such as (13, 0).
    """

    devices: tuple[GpuDevice, ...] = ()
    links: tuple[GpuLink, ...] = ()
    driver: str | None = None
    cuda_version: tuple[int, int] | None = None
    hidden: int = 0
    reason: str = ""


def gpu_devices() -> list[GpuDevice]:
    """The GPUs that this process may use; none where there is no driver. Never raises."""
    return list(gpu_inventory().devices)


def gpu_inventory(nvml: Any = None, environment: Mapping[str, str] | None = None) -> GpuInventory:
    """GPUs with their links and the driver.

    Args:
        nvml: the module ``pynvml``, or one like it.
        environment: where CUDA_VISIBLE_DEVICES is looked up; this process's by default.
    """
    if nvml is None:
        try:
            nvml = importlib.import_module("pynvml")
        except Exception as error:  # its import loads libraries on some systems
            return GpuInventory(reason=f"NVML's module does not load ({type(error).__name__})")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return GpuInventory(reason=_why(error))
    try:
        return _inventory(nvml, os.environ if environment is None else environment)
    except nvml.NVMLError as error:
        return GpuInventory(reason=f"the driver does not answer ({type(error).__name__.removeprefix('NVMLError_')})")
    finally:
        _or(None, nvml, nvml.nvmlShutdown)


def _why(error: Exception) -> str:
    match type(error).__name__:
        case "NVMLError_LibraryNotFound":
            return "no NVIDIA driver (libnvidia-ml is not there)"
        case "NVMLError_DriverNotLoaded":
            return "the NVIDIA driver is installed but not loaded"
        case "NVMLError_LibRmVersionMismatch":
            return "the NVIDIA driver was updated and its library no longer matches: restart the host"
        case "NVMLError_NoPermission":
            return "no permission to talk to the NVIDIA driver"
        case name:
            return f"the NVIDIA driver does not start ({name.removeprefix('NVMLError_')})"


def _or(otherwise: Answer, nvml: Any, question: Callable[..., Answer], *arguments: Any) -> Answer:
    """The answer, or ``otherwise`` where this GPU or driver has none."""
    try:
        return question(*arguments)
    except nvml.NVMLError:
        return otherwise


def _text(value: str | bytes) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _inventory(nvml: Any, environment: Mapping[str, str]) -> GpuInventory:
    driver = _text(_or("", nvml, nvml.nvmlSystemGetDriverVersion)) or None
    number = _or(0, nvml, nvml.nvmlSystemGetCudaDriverVersion)
    cuda = (number // 1000, number % 1000 // 10) if number else None
    every = {index: nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())}
    uuids = {index: _text(_or("", nvml, nvml.nvmlDeviceGetUUID, handle)) for index, handle in every.items()}
    visible = visible_indexes(uuids, environment.get("CUDA_VISIBLE_DEVICES"))
    devices = tuple(_device(nvml, index, every[index], uuids[index]) for index in visible)
    links = tuple(_link(nvml, first, second, every) for first, second in combinations(visible, 2))
    reason = ""
    if not every:
        reason = "the NVIDIA driver sees no GPU"
    elif not devices:
        reason = f"CUDA_VISIBLE_DEVICES hides all {len(every)} GPUs"
    return GpuInventory(devices, links, driver, cuda, len(every) - len(devices), reason)


def visible_indexes(uuids: Mapping[int, str], chosen: str | None) -> list[int]:
    """Which GPUs a value of CUDA_VISIBLE_DEVICES leaves, in its order.

    As CUDA reads it: indexes or the beginnings of UUIDs; what follows the first entry that is neither is hidden too.
    """
    if chosen is None:
        return list(uuids)
    found: list[int] = []
    for entry in (part.strip() for part in chosen.split(",")):
        if entry.isdigit() and int(entry) in uuids:
            index = int(entry)
        else:
            matching = [i for i, uuid in uuids.items() if entry and uuid.startswith(entry)]
            if len(matching) != 1:
                break
            index = matching[0]
        if index in found:
            return []  # CUDA refuses a list that names one twice
        found.append(index)
    return found


def _device(nvml: Any, index: int, handle: Any, uuid: str) -> GpuDevice:
    memory = _or(None, nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    held: list[Any] = [
        *_or([], nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle),
        *_or([], nvml, nvml.nvmlDeviceGetGraphicsRunningProcesses, handle),
    ]
    errors = _or(
        None, nvml, nvml.nvmlDeviceGetTotalEccErrors, handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
        nvml.NVML_VOLATILE_ECC,
    )  # fmt: skip
    capability = _or(None, nvml, nvml.nvmlDeviceGetCudaComputeCapability, handle)
    return GpuDevice(
        index=index,
        uuid=uuid,
        name=_text(_or("unknown", nvml, nvml.nvmlDeviceGetName, handle)),
        total_bytes=int(memory.total) if memory else 0,
        free_bytes=int(memory.free) if memory else 0,
        used_bytes=int(memory.used) if memory else 0,
        compute_capability=(int(capability[0]), int(capability[1])) if capability else None,
        ecc_errors=None if errors is None else int(errors),
        mig=_or([0, 0], nvml, nvml.nvmlDeviceGetMigMode, handle)[0] == 1,
        processes=tuple({each.pid: GpuProcess(each.pid, each.usedGpuMemory) for each in held}.values()),
    )


def _link(nvml: Any, first: int, second: int, handles: Mapping[int, Any]) -> GpuLink:
    pair = handles[first], handles[second]
    reads = _or(None, nvml, nvml.nvmlDeviceGetP2PStatus, *pair, nvml.NVML_P2P_CAPS_INDEX_READ)
    linked = _or(None, nvml, nvml.nvmlDeviceGetP2PStatus, *pair, nvml.NVML_P2P_CAPS_INDEX_NVLINK)
    peer_access = None if reads is None else reads == nvml.NVML_P2P_STATUS_OK
    if linked is not None and linked == nvml.NVML_P2P_STATUS_OK:
        return GpuLink(first, second, "nvlink", peer_access)
    meets = _or(None, nvml, nvml.nvmlDeviceGetTopologyCommonAncestor, *pair)
    kinds: dict[Any, Literal["switch", "host-bridge", "node", "system"]] = {
        nvml.NVML_TOPOLOGY_INTERNAL: "switch",
        nvml.NVML_TOPOLOGY_SINGLE: "switch",
        nvml.NVML_TOPOLOGY_MULTIPLE: "switch",
        nvml.NVML_TOPOLOGY_HOSTBRIDGE: "host-bridge",
        nvml.NVML_TOPOLOGY_NODE: "node",
        nvml.NVML_TOPOLOGY_SYSTEM: "system",
    }
    return GpuLink(first, second, kinds.get(meets, "unknown"), peer_access)
