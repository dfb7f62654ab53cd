"""NCCL, over which the ranks of a sharded model talk: how the GPUs reach each other, and what its variables do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from docmill.checks import Check
from serving.vllm.gpu_devices import GpuDevice, GpuInventory, GpuLink

ADVICE = {
    "NCCL_P2P_DISABLE": "1 sends everything through host memory: only where GPUs hang or crash when they read each "
    "other's memory (virtual machines, PCIe with ACS or IOMMU on)",
    "NCCL_IB_DISABLE": "1 keeps NCCL from InfiniBand and RoCE: only where a start hangs on a half configured adapter; "
    "means nothing within one host",
    "NCCL_SHM_DISABLE": "1 keeps NCCL from shared memory: only where /dev/shm is too small and cannot be made larger",
    "NCCL_DEBUG": "INFO writes the chosen paths to the server's log: set it when a start hangs",
    "NCCL_SOCKET_IFNAME": "names the network interface of the first contact: only where the ranks find no way",
}
"""Variable → what it does and when to set it."""


def nccl_check(
    inventory: GpuInventory, chosen: Sequence[GpuDevice], tensor_parallel_size: int, environment: Mapping[str, str]
) -> Check:
    """How the chosen GPUs reach each other, and variables that get in the way."""
    if tensor_parallel_size < 2:
        return Check("nccl", "ok", "not needed with one GPU")
    indexes = {each.index for each in chosen}
    links = [each for each in inventory.links if each.first in indexes and each.second in indexes]
    found = _paths(links)
    given = {name: environment[name] for name in ADVICE if environment.get(name)}
    told = "; set: " + ", ".join(f"{name}={value}" for name, value in given.items()) if given else ""
    detail = {"set": given, "variables": ADVICE}
    off = given.get("NCCL_P2P_DISABLE", "0") not in ("0", "")
    linked = bool(links) and all(each.kind == "nvlink" for each in links)
    blocked = [each for each in links if each.peer_access is False]
    if off and not blocked:
        return Check(
            "nccl", "warning", f"{found}{told}: the ranks talk through host memory although they need not",
            "unset NCCL_P2P_DISABLE unless starts hang without it", detail=detail,
        )  # fmt: skip
    if given.get("NCCL_SHM_DISABLE", "0") not in ("0", "") and not linked:
        return Check(
            "nccl", "warning", f"{found}{told}: without shared memory the ranks talk over the network",
            "unset NCCL_SHM_DISABLE; give the container more shared memory instead", detail=detail,
        )  # fmt: skip
    if blocked and not off:
        pairs = ", ".join(f"{each.first}-{each.second}" for each in blocked)
        return Check(
            "nccl", "warning", f"{found}; GPUs {pairs} cannot read each other's memory{told}",
            "sharding over them is slow; replicas (--replicas) are faster where the model fits one GPU. If a start "
            "hangs: NCCL_P2P_DISABLE=1, and NCCL_DEBUG=INFO to see why", detail=detail,
        )  # fmt: skip
    if links and not linked:
        return Check(
            "nccl", "ok", f"{found}{told}", "without NVLink, replicas are faster where the model fits one GPU",
            detail=detail,
        )  # fmt: skip
    hint = "" if given else "if a start hangs: NCCL_DEBUG=INFO shows where"
    return Check("nccl", "ok", f"{found}{told}", hint, detail=detail)


def _paths(links: Sequence[GpuLink]) -> str:
    if not links:
        return "how the GPUs reach each other is not known"
    kinds = {each.kind for each in links}
    if len(kinds) == 1:
        return f"all pairs over {_NAMES[links[0].kind]}"
    return ", ".join(f"{each.first}-{each.second} over {_NAMES[each.kind]}" for each in links)


_NAMES = {
    "nvlink": "NVLink",
    "switch": "a PCIe switch",
    "host-bridge": "the PCIe host bridge",
    "node": "PCIe within a NUMA node",
    "system": "PCIe between sockets",
    "unknown": "an unknown path",
}
