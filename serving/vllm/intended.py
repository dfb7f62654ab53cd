"""What is to be started: a model, how it is split over which GPUs, and the command line that comes of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docmill.checks import Check
from docmill.failures import ConfigurationError, DocmillError
from docmill.models.arguments import vllm_arguments
from docmill.models.gpus import Gpu
from docmill.models.planning import Plan, plan
from docmill.models.profile import ModelProfile
from docmill.models.splitting import why_not
from docmill.settings import ServingSettings
from serving.vllm.facts import VllmFacts
from serving.vllm.gpu_devices import GpuDevice
from serving.vllm.model_checks import flags_check, folder_check, served_name_check

TORCH_SHARE = 0.9955
"""Of the memory that the driver tells, what torch sees (measured on an H200: 139.8 of 140.4 GiB)."""
FP8_SINCE, FP4_SINCE = (8, 9), (10, 0)
"""Compute capabilities."""
OWN_FLAGS = frozenset({"--model", "--host", "--port", "--tensor-parallel-size", "-tp", "--served-model-name"})
"""Flags that settings decide: among serving.extra_arguments they would make the row say something else."""
ENDING_FLAGS = frozenset({"-h", "--help", "-v", "--version"})
"""Flags that print something and end the program."""
ANY_PORT = 8000
"""Stands for a port that is not chosen yet when the command line is checked."""


@dataclass(frozen=True, slots=True)
class Split:
    """How many GPUs: of one server, and of all replicas; the planner's word where the GPUs are known."""

    tensor_parallel_size: int
    replicas: int
    plan: Plan | None
    gpu: Gpu | None

    @property
    def gpus_needed(self) -> int:
        """Of all replicas."""
        return self.tensor_parallel_size * self.replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Intended:
    """A model that is to be started.

    Attributes:
        profile: with the weights that are served, see :func:`docmill.models.variants.profile_to_serve`.
        tensor_parallel_size: None: the best for the GPUs.
        gpus: indexes that may be used; (): any.
        max_model_len: None: the settings', else the profile's.
    """

    profile: ModelProfile
    settings: ServingSettings
    tensor_parallel_size: int | None = None
    replicas: int = 1
    gpus: tuple[int, ...] = ()
    port: int = 0
    max_model_len: int | None = None

    @property
    def folder(self) -> Path | None:
        """With the model's files: the profile's own, else where the hub's cache holds it; None where nowhere."""
        if self.profile.folder is not None:
            return Path(self.profile.folder)
        return cached_snapshot(self.profile.hub_id) if self.profile.hub_id else None

    def folder_check(self, *, verify: bool) -> Check:
        """The model's files are complete."""
        given = (*self.profile.arguments, *self.settings.extra_arguments)
        return folder_check(self.folder, name=self.profile.name, arguments=given, verify=verify)

    def context_check(self) -> Check | None:
        """The context is not longer than the model was made for; None where it is not."""
        length = self.max_model_len or self.settings.max_model_len or self.profile.max_model_len
        if length <= self.profile.context:
            return None
        return Check(
            "context",
            "warning",
            f"{length:,} tokens are more than the {self.profile.context:,} that the model was made for; vLLM refuses "
            "that unless it is told to stretch its positions",
            "lower serving.max_model_len",
        )

    def split(self, candidates: Sequence[GpuDevice], facts: VllmFacts | None) -> Split:
        """How it is split over the candidates (none: on a CPU)."""
        size = self.tensor_parallel_size
        if not candidates or not candidates[0].total_bytes:
            return Split(size or 1, self.replicas, None, None)
        gpu = gpu_kind(candidates[0], facts)
        if size is not None and why_not(self.profile, size):
            return Split(size, self.replicas, None, gpu)
        try:
            found = plan(
                self.profile, gpu, len(candidates), tensor_parallel_size=size,
                max_model_len=self.max_model_len or self.settings.max_model_len,
                utilization=self.settings.gpu_memory_utilization,
                max_num_seqs=self.settings.max_num_seqs,
            )  # fmt: skip
        except DocmillError:
            return Split(size or 1, self.replicas, None, gpu)
        return Split(size or found.tensor_parallel_size, self.replicas, found, gpu)

    def command_checks(self, split: Split, facts: VllmFacts) -> list[Check]:
        """The installed vLLM takes the flags, and serves the model under the name that requests use."""
        try:
            arguments = self.arguments(split, facts)
        except DocmillError as error:
            return [Check("flags", "failed", error.message, error.remedy, type(error))]
        return [flags_check(arguments, facts), served_name_check(self.profile.name, arguments)]

    def arguments(self, split: Split, facts: VllmFacts) -> tuple[str, ...]:
        """The flags.

        Raises:
            ConfigurationError: see :func:`refuse_own_flags`.
        """
        refuse_own_flags(self.settings)
        return vllm_arguments(
            self.profile,
            settings=self.settings,
            model=str(self.folder or self.profile.hub_id),
            served_name=self.profile.name,
            tensor_parallel_size=split.tensor_parallel_size,
            host=self.settings.host,
            port=self.port or ANY_PORT,
            max_model_len=self.max_model_len,
            platform="cpu" if facts.cuda_version is None else "cuda",
            version=facts.version,
            gpu=split.gpu,
        )


def refuse_own_flags(serving: ServingSettings) -> None:
    """Flags that docmill gives itself, or that end the server before it begins.

    Raises:
        ConfigurationError: there is one among ``serving.extra_arguments``.
    """
    for given in serving.extra_arguments:
        head = given.partition("=")[0]
        flag = "--" + head[2:].replace("_", "-") if head.startswith("--") else head
        if flag in OWN_FLAGS:
            raise ConfigurationError(
                f"{flag} in serving.extra_arguments has a setting of its own", remedy=f"leave {flag} out of them"
            )
        if flag in ENDING_FLAGS:
            raise ConfigurationError(
                f"with {flag} in serving.extra_arguments no server starts", remedy=f"leave {flag} out of them"
            )


def gpu_kind(device: GpuDevice, facts: VllmFacts | None = None) -> Gpu:
    """A GPU of this host as the planner wants it: with the memory that torch sees."""
    seen = {each.uuid.removeprefix("GPU-"): each.total_bytes for each in facts.gpus} if facts is not None else {}
    memory = seen.get(device.uuid.removeprefix("GPU-")) or round(device.total_bytes * TORCH_SHARE)
    capability = device.compute_capability or (0, 0)
    return Gpu(device.name.removeprefix("NVIDIA "), memory, fp8=capability >= FP8_SINCE, fp4=capability >= FP4_SINCE)


def cached_snapshot(hub_id: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where the hub's own cache holds the model, as ``hf download`` leaves it; None where it does not."""
    general = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = Path(environment.get("HF_HOME") or general / "huggingface")
    place = Path(environment.get("HF_HUB_CACHE") or home / "hub") / f"models--{hub_id.replace('/', '--')}"
    try:
        commit = (place / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    snapshot = place / "snapshots" / commit
    return snapshot if snapshot.is_dir() else None
