"""Checks of the host: driver, GPUs, port, disk, shared memory, and how the GPUs reach each other."""

from __future__ import annotations

import errno
import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from docmill.checks import Check
from docmill.failures import ConfigurationError
from docmill.model_failures import NoFreeGpu, NotEnoughGpuMemory, PortTaken, VllmMissing
from serving.vllm.facts import VllmFacts
from serving.vllm.gpu_devices import GpuDevice, GpuInventory
from serving.vllm.model_folder import model_files

GIB = 2**30
LEAST_DISK_BYTES = 2 * GIB
"""Compiled kernels and graphs of one model and a few restarts' logs."""
LEAST_SHARED_BYTES = GIB
"""NCCL and vLLM's broadcast ring take some hundred MB with two ranks; containers get 64 MB unless told otherwise."""


def driver_check(inventory: GpuInventory, facts: VllmFacts | None) -> Check:
    """The driver is there, and new enough for the CUDA that torch was built with."""
    if not inventory.devices and inventory.driver is None:
        if facts is not None and facts.cuda_version is None:
            return Check("driver", "ok", f"{inventory.reason}; vLLM here is for CPUs and needs none")
        return Check(
            "driver", "failed", inventory.reason, "install NVIDIA's driver, or use an environment for CPUs", NoFreeGpu
        )
    cuda = inventory.cuda_version
    found = f"{inventory.driver or 'unknown'}" + (f", CUDA up to {cuda[0]}.{cuda[1]}" if cuda else "")
    built = facts.cuda_version if facts is not None else None
    if cuda is not None and built is not None and int(built.split(".")[0]) > cuda[0]:
        return Check(
            "driver", "failed", f"{found}; torch in vLLM's environment was built for CUDA {built}",
            f"update the driver to one for CUDA {built.split('.')[0]}, or install a vLLM built for CUDA {cuda[0]}",
            VllmMissing,
        )  # fmt: skip
    return Check("driver", "ok", found)


def platform_check(inventory: GpuInventory, facts: VllmFacts) -> Check:
    """A build for GPUs where there are GPUs, one for CPUs where there are none."""
    found = f"vLLM for {facts.platform}, {_counted(len(inventory.devices), 'GPU')}"
    if facts.cuda_version is None and inventory.devices:
        return Check(
            "platform", "warning", f"{found}: it will not use them", "make one that does: docmill serve --install cuda"
        )
    if facts.cuda_version is not None and not inventory.devices:
        return Check(
            "platform", "failed", f"{found} ({inventory.reason})",
            "run it on a host with GPUs, or try things out with: docmill serve --install cpu", NoFreeGpu,
        )  # fmt: skip
    return Check("platform", "ok", found)


def gpus_check(inventory: GpuInventory, chosen: Sequence[GpuDevice], wanted: Sequence[int], needed: int) -> Check:
    """As many GPUs as the server takes, none of them cut up or faulty."""
    names = ", ".join(f"{each.index}: {each.name}" for each in chosen) or "none"
    hidden = f" ({inventory.hidden} more hidden by CUDA_VISIBLE_DEVICES)" if inventory.hidden else ""
    absent = [index for index in wanted if index not in {each.index for each in inventory.devices}]
    if absent:
        there = ", ".join(str(each.index) for each in inventory.devices) or "none"
        told = ", ".join(map(str, absent))
        return Check("gpus", "failed", f"no GPU {told} here{hidden}", f"choose among: {there}", NoFreeGpu)
    if len(chosen) < needed:
        return Check(
            "gpus", "failed", f"{_counted(len(chosen), 'GPU')} for a tensor-parallel size of {needed}{hidden}",
            "lower the tensor-parallel size, or name more GPUs with --gpus", NoFreeGpu,
        )  # fmt: skip
    faulty = [each for each in chosen if each.ecc_errors]
    if faulty:
        told = ", ".join(f"GPU {each.index}: {each.ecc_errors}" for each in faulty)
        return Check(
            "gpus", "warning", f"{names}; uncorrected memory errors since the driver started: {told}",
            "see nvidia-smi -q -d ECC,ROW_REMAPPER; reset or replace the GPU",
        )  # fmt: skip
    if cut := [str(each.index) for each in chosen if each.mig]:
        return Check(
            "gpus", "warning", f"{names}; cut into MIG instances: {', '.join(cut)}",
            "docmill plans whole GPUs: switch MIG off, or name an instance in CUDA_VISIBLE_DEVICES yourself",
        )  # fmt: skip
    return Check("gpus", "ok", names + hidden)


def memory_check(chosen: Sequence[GpuDevice], utilization: float) -> Check:
    """Each GPU has free what vLLM will take: it refuses to start where less is free than its share."""
    short = [each for each in chosen if each.total_bytes and each.free_bytes < utilization * each.total_bytes]
    told = ", ".join(
        f"{each.index}: {each.free_bytes / GIB:.1f} of {each.total_bytes / GIB:.1f} GiB free" for each in chosen
    )
    if not short:
        return Check("gpu memory", "ok", told)
    holders = [f"GPU {each.index}: {_holders(each)}" for each in short if each.processes]
    held = f"; held by {'; '.join(holders)}" if holders else ""
    possible = min(each.free_bytes / each.total_bytes for each in short)
    lower = f", or lower serving.gpu_memory_utilization to {possible - 0.02:.2f}" if possible > 0.2 else ""
    return Check(
        "gpu memory", "failed", f"{told}; a share of {utilization:g} is to be taken{held}",
        f"end what holds the memory (docmill servers; nvidia-smi), choose other GPUs with --gpus{lower}",
        NotEnoughGpuMemory,
    )  # fmt: skip


def _holders(device: GpuDevice) -> str:
    told = []
    for each in device.processes[:3]:
        try:
            name = psutil.Process(each.pid).name()
        except psutil.Error:
            name = "?"
        size = f" {each.used_bytes / GIB:.1f} GiB" if each.used_bytes else ""
        told.append(f"{name} (pid {each.pid}){size}")
    return ", ".join(told)


def host_memory_check(folder: Path | None, kv_cache_bytes: int) -> Check:
    """On a CPU: the weights and the KV cache fit the host's memory."""
    weights = model_files(folder).total_bytes if folder is not None else 0
    needed, there = weights + kv_cache_bytes, psutil.virtual_memory().available
    found = f"{there / GIB:.1f} GiB available, {needed / GIB:.1f} needed for weights and KV cache"
    if there < needed:
        remedy = "lower serving.cpu_kv_cache_bytes, or choose a smaller model"
        return Check("memory", "failed", found, remedy, NotEnoughGpuMemory)
    return Check("memory", "ok", found)


def torch_check(inventory: GpuInventory, facts: VllmFacts) -> Check:
    """Torch in vLLM's environment sees the GPUs that the driver sees."""
    driver = [each.name for each in inventory.devices]
    seen = [each.name for each in facts.gpus]
    if facts.cuda_version is None:
        return Check("torch", "ok", f"torch {facts.torch_version} has no CUDA")
    if len(seen) != len(driver):
        return Check(
            "torch", "failed", f"torch sees {_counted(len(seen), 'GPU')}, the driver {len(driver)}",
            "compare CUDA_VISIBLE_DEVICES, the container's devices and the driver's version; "
            f"ask it: {facts.python} -c 'import torch; torch.cuda.init()'",
            VllmMissing if not seen else NoFreeGpu,
        )  # fmt: skip
    uuids = {each.uuid.removeprefix("GPU-") for each in facts.gpus if each.uuid}
    expected = {each.uuid.removeprefix("GPU-") for each in inventory.devices if each.uuid}
    if uuids and expected and uuids != expected:
        return Check(
            "torch", "failed", "torch sees other GPUs than the driver", "check CUDA_VISIBLE_DEVICES", NoFreeGpu
        )
    if seen != driver:
        return Check(
            "torch", "warning", f"torch counts the GPUs in another order: {', '.join(seen)}",
            "set CUDA_DEVICE_ORDER=PCI_BUS_ID",
        )  # fmt: skip
    return Check("torch", "ok", f"torch {facts.torch_version} sees {_counted(len(seen), 'GPU')}")


def port_check(host: str, port: int) -> Check:
    """Nothing listens on the port. 0 means that a free one will be taken."""
    if port == 0:
        return Check("port", "ok", "a free one will be taken")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # a port that only lingers from an ended server can be taken, and vLLM takes it
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return _port_problem(host, port, error)
    return Check("port", "ok", f"{host}:{port} is free")


def _port_problem(host: str, port: int, error: OSError) -> Check:
    if error.errno == errno.EADDRINUSE:
        return Check(
            "port", "failed", f"{host}:{port} is taken{_listener(port)}",
            "choose another with --port, or leave it out and a free one is taken", PortTaken,
        )  # fmt: skip
    if error.errno == errno.EACCES:
        return Check("port", "failed", f"port {port} is reserved for root", "choose one above 1023", ConfigurationError)
    return Check(
        "port", "failed", f"{host} is no address of this host", "correct serving.host (127.0.0.1, 0.0.0.0…)",
        ConfigurationError,
    )  # fmt: skip


def _listener(port: int) -> str:
    """Who listens there, as far as may be seen."""
    try:
        for each in psutil.net_connections(kind="tcp"):
            if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr.port == port and each.pid:
                return f" by {psutil.Process(each.pid).name()} (pid {each.pid})"
    except (psutil.Error, OSError):
        pass
    return ""


def disk_check(folders: Sequence[Path]) -> Check:
    """Room for logs and compiled kernels."""
    told, short = [], False
    for folder in folders:
        held = folder
        while not held.exists() and held != held.parent:
            held = held.parent
        free = shutil.disk_usage(held).free
        short = short or free < LEAST_DISK_BYTES
        told.append(f"{folder}: {free / GIB:.1f} GiB free")
    state = "; ".join(dict.fromkeys(told))
    if short:
        return Check(
            "disk", "warning", state, "free some space; logs go to data_dir, compiled kernels to VLLM_CACHE_ROOT"
        )
    return Check("disk", "ok", state)


def shared_memory_check(tensor_parallel_size: int, place: Path = Path("/dev/shm")) -> Check:
    """Room in /dev/shm, through which the ranks of a sharded model talk."""
    if not place.is_dir():
        return Check("shared memory", "ok", f"no {place} on this system")
    usage = shutil.disk_usage(place)
    found = f"{place}: {usage.free / GIB:.2f} of {usage.total / GIB:.2f} GiB free"
    if usage.free < LEAST_SHARED_BYTES and tensor_parallel_size > 1:
        return Check(
            "shared memory", "warning", f"{found}, for {tensor_parallel_size} ranks",
            "in a container: --shm-size=8g or --ipc=host; else delete what dead processes left there",
        )  # fmt: skip
    return Check("shared memory", "ok", found)


def compile_cache(environment: Mapping[str, str] = os.environ) -> Path:
    """Where vLLM keeps compiled kernels and graphs."""
    if named := environment.get("VLLM_CACHE_ROOT"):
        return Path(named)
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vllm"


def _counted(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
