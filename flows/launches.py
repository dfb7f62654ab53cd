"""From settings and a model to what a supervisor starts: the environment, the GPUs, the flags, the port, the key."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

from docmill.failures import ConfigurationError
from docmill.launching import Launch
from docmill.model_failures import NoFreeGpu
from docmill.model_servers import ServerRecord, ServerRegistry, ServerState
from docmill.models.catalog_files import catalog
from docmill.models.naming import load_profile
from docmill.models.variants import profile_to_serve
from docmill.places import whole_path
from docmill.settings import Settings
from flows.server_access import base_url, free_ports, is_loopback, server_key
from serving.vllm.environment import vllm_python
from serving.vllm.facts import VllmFacts, vllm_facts
from serving.vllm.gpu_devices import GpuInventory, gpu_inventory
from serving.vllm.intended import Intended, Split, refuse_own_flags
from serving.vllm.preflight import choose_gpus, facts_folder, preflight, require

LOGS = Path("logs") / "model-servers"
DRAIN_LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """What one start does otherwise than the settings say; None: as they do.

    Attributes:
        tensor_parallel_size: 0: what the plan finds best.
        gpus: indexes that may be used; (): all.
    """

    tensor_parallel_size: int | None = None
    gpus: tuple[int, ...] = ()
    port: int | None = None
    max_model_len: int | None = None

    def over(self, settings: Settings) -> Settings:
        """The settings with these in force."""
        names = ("tensor_parallel_size", "port", "max_model_len")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return settings.model_copy(update={"serving": settings.serving.model_copy(update=given)}) if given else settings


def profile_key(name_or_path: str, settings: Settings) -> str:
    """What servers of a model are found by: the profile's name, or the folder's absolute path.

    The model's files are not looked at: they may lie on the GPU host alone.

    Raises:
        ModelNotFound: no profile of that name, and it is no path.
    """
    folders = settings.serving.models
    for name in (name_or_path, name_or_path.lower()):
        if name in folders:
            return name
    # in load_profile's order: a folder that happens to be called like a profile does not hide it
    known = catalog()
    named = {*known, *(each.hub_id.lower() for each in known.values() if each.hub_id)}
    looks_like_path = name_or_path.startswith((".", "~", "/")) or Path(name_or_path).is_dir()
    if looks_like_path and name_or_path.lower() not in named:
        return str(whole_path(name_or_path))
    return load_profile(name_or_path, {}).name


class Preparation:
    """Everything between a row in state ``starting`` and the start of its process.

    Args:
        settings: as the start has them (see :meth:`StartOptions.over`).
        profile: a profile's name or a folder.
        server_ids: rows; one server for each.
        registry: their ledger.
        gpus: indexes that may be used; (): all.
        tell: is told the phase, for all rows.
    """

    def __init__(
        self,
        settings: Settings,
        profile: str,
        server_ids: Sequence[UUID],
        registry: ServerRegistry,
        *,
        gpus: tuple[int, ...] = (),
        tell: Callable[[str], Awaitable[None]],
    ) -> None:
        # a relative path would look like a name on the hub to vLLM, and mean nothing in the row
        models = {name: folder.expanduser().absolute() for name, folder in settings.serving.models.items()}
        self._serving = settings.serving.model_copy(update={"models": models})
        self._settings = settings.model_copy(update={"serving": self._serving})
        self._profile = profile
        self._ids = tuple(server_ids)
        self._registry = registry
        self._gpus = gpus
        self._tell = tell

    async def launches(self) -> dict[UUID, Launch]:
        """What to start for each row; the rows say what is going to run, and hold their GPUs.

        Raises:
            DocmillError: the named error of the first thing that is not as a start needs it.
        """
        await self._tell("preflight")
        refuse_own_flags(self._serving)
        facts = await vllm_facts(vllm_python(self._settings), facts_folder(self._settings))
        on_gpus = facts.cuda_version is not None
        if not on_gpus and len(self._ids) > 1:
            raise ConfigurationError("a CPU runs one server of a model", remedy="leave out --replicas")
        inventory = await asyncio.to_thread(gpu_inventory)
        usable = await self._usable(inventory) if on_gpus and inventory.devices else self._gpus
        profile = await asyncio.to_thread(
            profile_to_serve, self._profile, self._serving.models, self._serving.quantization
        )
        require(
            await preflight(
                self._settings, self._profile, replicas=len(self._ids), gpus=usable, port=self._serving.port,
                inventory=inventory,
            )
        )  # fmt: skip
        intended = Intended(
            profile=profile,
            settings=self._serving,
            tensor_parallel_size=self._serving.tensor_parallel_size or None,
            replicas=len(self._ids),
            gpus=usable,
            max_model_len=self._serving.max_model_len,
        )
        candidates = choose_gpus(inventory.devices, self._serving.gpu_memory_utilization, usable) if on_gpus else []
        split = intended.split(candidates, facts)
        ports = self._ports()
        found: dict[UUID, Launch] = {}
        for server_id, port in zip(self._ids, ports, strict=True):
            taken: tuple[int, ...] = ()
            if on_gpus:
                roomy = [each.index for each in candidates[: split.gpus_needed]]
                taken = await self._take(server_id, roomy, [each.index for each in candidates], split)
            found[server_id] = await self._launch(server_id, replace(intended, port=port), split, facts, taken)
        return found

    # --- parts ----------------------------------------------------------------------------------------------------

    async def _usable(self, inventory: GpuInventory) -> tuple[int, ...]:
        """The GPUs that no other model server holds; those that one is just giving back are waited for."""
        wanted = [each.index for each in inventory.devices if not self._gpus or each.index in self._gpus]
        missing = [index for index in self._gpus if index not in wanted]
        deadline = asyncio.get_running_loop().time() + self._serving.drain_seconds + 60.0
        while True:
            others = [each for each in await self._others() if set(each.gpus) & set(wanted)]
            held = {index for each in others for index in each.gpus}
            leaving = [each for each in others if each.state is ServerState.DRAINING]
            if not leaving or asyncio.get_running_loop().time() > deadline:
                break
            await self._tell("waiting for GPUs")
            await asyncio.sleep(DRAIN_LOOK_SECONDS)
        free = [index for index in wanted if index not in held]
        if not free and wanted:
            holders = ", ".join(f"{each.profile} ({each.state}) holds {_listed(each.gpus)}" for each in others)
            raise NoFreeGpu(f"no GPU of this host is free: {holders}")
        return (*free, *missing)

    async def _others(self) -> list[ServerRecord]:
        here = (await self._registry.server(self._ids[0])).host
        return [
            each
            for each in await self._registry.servers()
            if each.host == here and each.gpus and each.id not in self._ids
        ]

    def _ports(self) -> list[int]:
        host, first = self._serving.host, self._serving.port
        if first:
            return [first + offset for offset in range(len(self._ids))]
        try:
            return free_ports(host, len(self._ids))
        except OSError as error:
            raise ConfigurationError(
                f"serving.host {host} is no address of this host: {error.strerror}", remedy="correct it"
            ) from error

    async def _take(self, server_id: UUID, roomy: list[int], every: list[int], split: Split) -> tuple[int, ...]:
        for candidates in (roomy, every):
            if taken := await self._registry.assign_gpus(server_id, candidates, split.tensor_parallel_size):
                return taken
        size = split.tensor_parallel_size
        raise NoFreeGpu(f"{size} GPUs are needed; another model server has just taken some of those that were free")

    async def _launch(
        self, server_id: UUID, intended: Intended, split: Split, facts: VllmFacts, gpus: tuple[int, ...]
    ) -> Launch:
        arguments = intended.arguments(split, facts)
        environment = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": _listed(gpus)} if gpus else {}
        if facts.cuda_version is None:
            environment["VLLM_CPU_KVCACHE_SPACE"] = str(max(1, math.ceil(self._serving.cpu_kv_cache_bytes / 2**30)))
        name = intended.profile.name
        launch = Launch(
            command=(facts.python, "-m", facts.server_module or "vllm.entrypoints.openai.api_server", *arguments),
            environment=environment,
            base_url=base_url(self._serving.host, intended.port),
            served_name=name,
            log_path=log_path(self._settings.data_dir, self._profile, server_id),
            config_hash=_hash(facts, arguments, environment),
            can_sleep=facts.cuda_version is not None and facts.can_sleep and is_loopback(self._serving.host),
            api_key=server_key(self._settings),
        )
        await self._registry.describe(
            server_id,
            model=str(intended.folder or intended.profile.hub_id),
            served_name=name,
            tensor_parallel_size=split.tensor_parallel_size,
            max_model_len=intended.max_model_len or self._serving.max_model_len or intended.profile.max_model_len,
            vllm_version=facts.version,
            config_hash=launch.config_hash,
            log_path=str(launch.log_path),
        )
        return launch


def log_path(data_dir: Path, profile: str, server_id: UUID) -> Path:
    """The log of one server."""
    plain = re.sub(r"[^\w.-]+", "-", Path(profile).name if "/" in profile else profile).strip("-.")[:60] or "model"
    return data_dir / LOGS / f"{plain}-{str(server_id)[:8]}.log"


def _listed(gpus: Sequence[int]) -> str:
    return ",".join(map(str, gpus))


def _hash(facts: VllmFacts, arguments: Sequence[str], environment: dict[str, str]) -> str:
    """Of all that shapes the server: not where it listens, not which GPUs of a kind it has."""
    shape: list[Any] = []
    skip = False
    for each in arguments:
        if not skip and each not in ("--port", "--host"):
            shape.append(each)
        skip = each in ("--port", "--host")
    kept = {name: value for name, value in environment.items() if not name.startswith("CUDA_")}
    told = json.dumps([facts.distribution, facts.version, shape, kept], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]
