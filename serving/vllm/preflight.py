"""Everything that can be known before a start: each check with what was found and what to do about it.

A start of a large model takes minutes before it fails; these take seconds (the first question to a new vLLM environment
takes longer, its answer is kept). Nothing here changes anything.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from docmill.checks import Check
from docmill.failures import ConfigurationError, DocmillError, failure_of
from docmill.model_failures import NoFreeGpu
from docmill.models.variants import profile_to_serve
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
from serving.vllm.intended import Intended
from serving.vllm.model_checks import architecture_check, fit_check, parallel_check, version_check
from serving.vllm.nccl_checks import nccl_check


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


async def preflight(
    settings: Settings,
    profile_or_path: str | None = None,
    *,
    tensor_parallel_size: int | None = None,
    replicas: int = 1,
    gpus: tuple[int, ...] = (),
    port: int | None = None,
    max_model_len: int | None = None,
    verify: bool = False,
    inventory: GpuInventory | None = None,
) -> list[Check]:
    """Everything that a start needs, in the order in which a start would miss it. Never raises.

    Args:
        settings: where vLLM, the models, the data folder and the caches are, and how servers are started.
        profile_or_path: what is to be started; None: the host and vLLM's environment alone.
        tensor_parallel_size: GPUs of one server; None: the settings', else the best.
        replicas: servers beside each other.
        gpus: indexes that may be used; (): all.
        port: to listen on; None: the settings'.
        max_model_len: context in tokens; None: the settings', else the profile's.
        verify: also compare the model's files with its SHA256SUMS (minutes for a large model).
        inventory: the GPUs; asked from the driver by default.
    """
    if profile_or_path is None:
        return await check_host(settings, gpus=gpus, port=port, inventory=inventory)
    try:
        serving = settings.serving
        profile = await asyncio.to_thread(profile_to_serve, profile_or_path, serving.models, serving.quantization)
    except DocmillError as error:
        rest = await check_host(settings, gpus=gpus, port=port, inventory=inventory)
        return [Check("model", "failed", error.message, error.remedy, type(error), dict(error.detail)), *rest]
    seen = await _inventory(inventory)
    intended = Intended(
        profile=profile,
        settings=settings.serving,
        tensor_parallel_size=tensor_parallel_size or settings.serving.tensor_parallel_size or None,
        replicas=replicas,
        gpus=gpus,
        port=settings.serving.port if port is None else port,
        max_model_len=max_model_len,
    )
    checks = await _check_start(intended, settings, seen, verify=verify)
    if settings.serving.base_urls:
        told = "serving.base_urls is set: runs use those servers, nothing is started"
        checks.append(Check("attached", "warning", told, "unset it to have docmill start servers"))
    return checks


async def _check_start(intended: Intended, settings: Settings, seen: GpuInventory, *, verify: bool) -> list[Check]:
    serving = settings.serving
    facts, folder, others = await asyncio.gather(
        _facts(settings),
        _tried("model", lambda: asyncio.to_thread(intended.folder_check, verify=verify)),
        _apart(settings, serving.host, intended.port),
    )
    known = facts if isinstance(facts, VllmFacts) else None
    on_gpus = known.cuda_version is not None if known is not None else bool(seen.devices)
    candidates = choose_gpus(seen.devices, serving.gpu_memory_utilization, intended.gpus) if on_gpus else []
    checks = [_vllm(facts), folder]
    if known is not None:
        checks.append(architecture_check(intended.profile.architecture, known, intended.profile.least_version))
    split = intended.split(candidates, known)
    checks.append(parallel_check(intended.profile, split.tensor_parallel_size))
    checks += [context] if (context := intended.context_check()) is not None else []
    if on_gpus:
        chosen = candidates[: split.gpus_needed]
        checks += _gpu_checks(seen, chosen, known, intended.gpus, split.gpus_needed, serving.gpu_memory_utilization)
        checks += [fit_check(split.plan)] if split.plan is not None else []
        checks.append(nccl_check(seen, chosen, split.tensor_parallel_size, os.environ))
    else:
        checks += [platform_check(seen, known)] if known is not None else []
        if intended.gpus:
            told = "GPUs are named, but this host has none, or vLLM here is built for CPUs"
            checks.append(Check("gpus", "failed", told, "leave out --gpus", NoFreeGpu))
        if intended.folder is not None:
            checks.append(host_memory_check(intended.folder, serving.cpu_kv_cache_bytes))
    if known is not None:
        checks += intended.command_checks(split, known)
    return [*checks, shared_memory_check(split.tensor_parallel_size), *others]


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
