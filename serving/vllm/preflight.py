"""Everything that can be known before a start: each check with what was found and what to do about it.

A start of a large model takes minutes before it fails; these take seconds (the first question to a new vLLM environment
takes longer, its answer is kept). Nothing here changes anything.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from docmill.checks import Check
from docmill.failures import ConfigurationError, DocmillError, failure_of
from docmill.settings import Settings
from serving.vllm.environment import vllm_python
from serving.vllm.facts import VllmFacts, vllm_facts
from serving.vllm.gpu_devices import GpuDevice, GpuInventory, gpu_inventory
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
from serving.vllm.model_checks import (
    architecture_check,
    flags_check,
    folder_check,
    served_name_check,
    version_check,
)
from serving.vllm.nccl_checks import nccl_check


@dataclass(frozen=True, slots=True, kw_only=True)
class Intended:
    """What is to be started, as far as it is known before a start.

    Attributes:
        name: of the profile.
        architecture: of the model.
        folder: with its files; None where none is set.
        tensor_parallel_size, replicas: GPUs are their product.
        arguments: the flags for an installed vLLM (everything behind ``-m MODULE``).
        fits: what the planner says of these GPUs.
        gpus: indexes that it may use; (): any.
    """

    name: str
    served_name: str
    architecture: str
    folder: Path | None
    tensor_parallel_size: int
    arguments: Callable[[VllmFacts], Sequence[str]]
    fits: Callable[[Sequence[GpuDevice]], Sequence[Check]] = lambda devices: ()
    replicas: int = 1
    gpus: tuple[int, ...] = ()
    host: str = "127.0.0.1"
    port: int = 0


def require(checks: Iterable[Check]) -> None:
    """Nothing where no check failed.

    Raises:
        DocmillError: the named error of the first check that failed (ModelNotFound, ModelIncomplete, NotAVisionModel,
            UnsupportedModel, ParallelSizeImpossible, PortTaken, NotEnoughGpuMemory, NoFreeGpu, VllmMissing,
            UnsupportedFlag, ConfigurationError); the other failed checks are in its detail.
    """
    failed = [each for each in checks if each.state == "failed"]
    if failed:
        first, *others = failed
        raise (first.error or ConfigurationError)(
            f"{first.what}: {first.found}",
            remedy=first.remedy,
            detail={**first.detail, "others": [f"{each.what}: {each.found}" for each in others]},
        )


async def check_host(
    settings: Settings, *, gpus: tuple[int, ...] = (), port: int | None = None, inventory: GpuInventory | None = None
) -> list[Check]:
    """The host and vLLM's environment, for no model in particular."""
    facts, seen, others = await asyncio.gather(
        _facts(settings), _inventory(inventory), _apart(settings, settings.serving.host, _port(settings, port))
    )
    known = facts if isinstance(facts, VllmFacts) else None
    chosen = [each for each in seen.devices if not gpus or each.index in gpus]
    return [
        _vllm(facts),
        *_gpu_checks(seen, chosen, known, gpus, 0, settings.serving.gpu_memory_utilization),
        nccl_check(seen, chosen, len(chosen), os.environ),
        shared_memory_check(len(chosen)),
        *others,
    ]


async def check_start(
    intended: Intended, settings: Settings, *, verify: bool = False, inventory: GpuInventory | None = None
) -> list[Check]:
    """Everything that a start of that model needs, in the order in which a start would miss it.

    Args:
        intended: what is to be started.
        settings: where vLLM, the data folder and the caches are.
        verify: also compare the model's files with its SHA256SUMS (minutes for a large model).
        inventory: the GPUs; asked from the driver by default.
    """
    facts, seen, folder, others = await asyncio.gather(
        _facts(settings),
        _inventory(inventory),
        _tried("model", lambda: _folder(intended, settings, verify)),
        _apart(settings, intended.host, intended.port),
    )
    known = facts if isinstance(facts, VllmFacts) else None
    on_gpus = known.cuda_version is not None if known is not None else bool(seen.devices)
    utilization = settings.serving.gpu_memory_utilization
    needed = intended.tensor_parallel_size * intended.replicas
    chosen = choose_gpus(seen.devices, utilization, intended.gpus)[:needed] if on_gpus else []
    checks = [_vllm(facts), folder]
    if known is not None:
        checks.append(architecture_check(intended.architecture, known))
    if on_gpus:
        checks += _gpu_checks(seen, chosen, known, intended.gpus, needed, utilization)
        checks += intended.fits(chosen)
        checks.append(nccl_check(seen, chosen, intended.tensor_parallel_size, os.environ))
    else:
        checks += [platform_check(seen, known)] if known is not None else []
        checks.append(host_memory_check(intended.folder, settings.serving.cpu_kv_cache_bytes))
    if known is not None:
        arguments = intended.arguments(known)
        checks += [flags_check(arguments, known), served_name_check(intended.served_name, arguments)]
    return [*checks, shared_memory_check(intended.tensor_parallel_size), *others]


def choose_gpus(devices: Sequence[GpuDevice], utilization: float, wanted: Sequence[int] = ()) -> list[GpuDevice]:
    """GPUs to start on: those with enough free memory first, else by index.

    Args:
        devices: all that may be used.
        utilization: share of the memory that vLLM takes; it refuses a GPU on which less is free.
        wanted: indexes to choose among; (): all.
    """
    allowed = [each for each in devices if not wanted or each.index in wanted]
    return sorted(allowed, key=lambda each: (each.free_bytes < utilization * each.total_bytes, each.index))


def facts_folder(settings: Settings) -> Path:
    """Where the answers of vLLM environments are kept."""
    return settings.data_dir / "cache"


def _gpu_checks(
    seen: GpuInventory,
    chosen: Sequence[GpuDevice],
    known: VllmFacts | None,
    wanted: Sequence[int],
    needed: int,
    utilization: float,
) -> list[Check]:
    checks = [driver_check(seen, known)]
    if known is not None:
        checks.append(platform_check(seen, known))
    if seen.devices:
        checks.append(gpus_check(seen, chosen, wanted, needed))
        checks += [memory_check(chosen, utilization)] if chosen else []
        checks += [torch_check(seen, known)] if known is not None else []
    return checks


async def _apart(settings: Settings, host: str, port: int) -> list[Check]:
    """Checks that need nothing of the others."""
    return [
        await _tried("port", lambda: asyncio.to_thread(port_check, host, port)),
        await _tried("disk", lambda: asyncio.to_thread(disk_check, [settings.data_dir, compile_cache()])),
    ]


def _port(settings: Settings, port: int | None) -> int:
    return settings.serving.port if port is None else port


async def _inventory(given: GpuInventory | None) -> GpuInventory:
    return given if given is not None else await asyncio.to_thread(gpu_inventory)


async def _folder(intended: Intended, settings: Settings, verify: bool) -> Check:
    given = settings.serving.extra_arguments
    return await asyncio.to_thread(folder_check, intended.folder, name=intended.name, arguments=given, verify=verify)


async def _facts(settings: Settings) -> VllmFacts | DocmillError:
    try:
        return await vllm_facts(vllm_python(settings), facts_folder(settings))
    except DocmillError as error:
        return error


def _vllm(facts: VllmFacts | DocmillError) -> Check:
    if isinstance(facts, VllmFacts):
        return version_check(facts)
    said = facts.detail.get("said")
    found = f"{facts.message}: {said}" if said else facts.message
    return Check("vllm", "failed", found, facts.remedy, type(facts), dict(facts.detail))


async def _tried(what: str, check: Callable[[], Awaitable[Check]]) -> Check:
    try:
        return await check()
    except Exception as error:
        failure = failure_of(error)
        kind = type(error) if isinstance(error, DocmillError) else None
        return Check(what, "failed", failure.message, failure.remedy, kind)
