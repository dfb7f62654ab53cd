"""Checks of the model and of the command line that would start it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from docmill.checks import Check
from docmill.failures import ConfigurationError
from docmill.model_failures import (
    ModelNotFound,
    NotEnoughGpuMemory,
    ParallelSizeImpossible,
    UnsupportedFlag,
    UnsupportedModel,
    VllmMissing,
)
from docmill.models.gpus import GIB
from docmill.models.planning import Plan
from docmill.models.profile import ModelProfile
from docmill.models.splitting import possible_sizes, why_not
from serving.vllm.facts import VllmFacts, release_of
from serving.vllm.flag_check import check_flags
from serving.vllm.model_folder import check_model_folder, model_files
from serving.vllm.recipes import SUPPORTED

_NAMED = 4
_SERVED_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,200}")


def version_check(facts: VllmFacts) -> Check:
    """A vLLM of a version that docmill knows, which could say all that was asked."""
    cuda = f", CUDA {facts.cuda_version}" if facts.cuda_version else ""
    found = (
        f"{facts.distribution} {facts.version}, torch {facts.torch_version}{cuda}, Python {facts.python_version}, "
        f"{facts.python}"
    )
    low, high = ("{}.{}".format(*each) for each in SUPPORTED)
    if facts.release < SUPPORTED[0]:
        told = f"{found}: older than {low}"
        return Check("vllm", "failed", told, VllmMissing.default_remedy, VllmMissing)
    if facts.problems:
        told = "; ".join(f"{what}: {why}" for what, why in facts.problems.items())
        return Check("vllm", "warning", f"{found}; it could not say all: {told}", "mend it, or install another version")
    if facts.release > SUPPORTED[1]:
        told = f"{found}: newer than {high}, the newest that was tried"
        return Check("vllm", "warning", told, "watch the first runs")
    return Check("vllm", "ok", found)


def parallel_check(profile: ModelProfile, size: int) -> Check:
    """The model can be cut over so many GPUs."""
    reason = why_not(profile, size)
    sizes = ", ".join(map(str, possible_sizes(profile)))
    if reason:
        return Check(
            "parallel size", "failed", f"{profile.name} cannot be cut over {size} GPUs: {reason}",
            f"possible are {sizes}", ParallelSizeImpossible,
        )  # fmt: skip
    return Check("parallel size", "ok", f"{size} (possible are {sizes})")


def fit_check(found: Plan) -> Check:
    """What the planner says: weights, room for the KV cache, pages at once."""
    memory = found.memory
    told = (
        f"{memory.weights / GIB:.1f} GiB of weights a GPU, {memory.kv_tokens:,} tokens of KV cache, "
        f"{found.pages_at_once} pages at once"
    )
    if not found.fits:
        return Check("plan", "failed", "; ".join(found.reasons), "; ".join(found.advice), NotEnoughGpuMemory)
    if found.warnings:
        return Check("plan", "warning", f"{told}; {'; '.join(found.warnings)}", "see: docmill plan")
    return Check("plan", "ok", told)


def architecture_check(architecture: str, facts: VllmFacts, least_version: str = "") -> Check:
    """The installed vLLM has code for the model."""
    if least_version and facts.release < release_of(least_version):
        return Check(
            "architecture", "failed", f"{architecture} needs vLLM {least_version}, installed is {facts.version}",
            "docmill serve --install cuda --version V", UnsupportedModel,
        )  # fmt: skip
    if not facts.architectures:
        return Check("architecture", "warning", f"vLLM {facts.version} did not say which it knows", "see: vllm")
    if architecture in facts.architectures:
        return Check("architecture", "ok", f"{architecture}, known to vLLM {facts.version}")
    return Check(
        "architecture", "failed", f"vLLM {facts.version} does not know {architecture}",
        "choose another model, or install a vLLM that knows it: docmill serve --install cuda --version V",
        UnsupportedModel,
    )  # fmt: skip


def folder_check(
    folder: Path | None,
    *,
    name: str,
    arguments: Sequence[str] = (),
    verify: bool = False,
    say: Callable[[str], None] | None = None,
) -> Check:
    """The model's folder is complete. Reads headers alone, unless ``verify``."""
    if folder is None:
        return Check(
            "model", "failed", f"no folder is set for {name}",
            f'download the model and name its folder in docmill.toml: [serving.models] "{name}" = "/models/…"',
            ModelNotFound,
        )  # fmt: skip
    findings = check_model_folder(
        folder,
        weights=_value_of("--load-format", arguments) != "dummy",
        chat_template=_value_of("--chat-template", arguments) is None,
        verify=verify,
        say=say,
    )
    fatal = [each for each in findings if each.error is not None]
    told = "; ".join(each.message for each in (fatal or findings)[:_NAMED])
    if len(fatal or findings) > _NAMED:
        told += f"; and {len(fatal or findings) - _NAMED} more"
    detail = {"findings": [{"file": f.file, "message": f.message, "remedy": f.remedy} for f in findings]}
    if fatal:
        return Check("model", "failed", told, fatal[0].remedy, fatal[0].error, detail)
    files = model_files(folder)
    size = f"{folder}, {files.shards} shard{'' if files.shards == 1 else 's'}, {files.total_bytes / GIB:.1f} GiB"
    if findings:
        return Check("model", "warning", f"{size}; {told}", findings[0].remedy, detail=detail)
    return Check("model", "ok", size + (", sums verified" if verify else ""))


def flags_check(arguments: Sequence[str], facts: VllmFacts) -> Check:
    """The installed vLLM takes every flag."""
    problems = check_flags(arguments, facts)
    fatal = [each for each in problems if each.fatal]
    shown = fatal or problems
    if not shown:
        return Check("flags", "ok", f"{sum(each.startswith('-') for each in arguments)} flags, all taken")
    told = "; ".join(each.message for each in shown[:_NAMED])
    told += f"; and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    remedy = "; ".join(dict.fromkeys(f"{each.flag}: {each.remedy}" for each in shown[:_NAMED]))
    detail = {"flags": [{"flag": p.flag, "message": p.message, "remedy": p.remedy} for p in problems]}
    if fatal:
        return Check("flags", "failed", told, remedy, UnsupportedFlag, detail)
    return Check("flags", "warning", told, remedy, detail=detail)


def served_name_check(served_name: str, arguments: Sequence[str]) -> Check:
    """Requests will name the model as the server knows it."""
    if not _SERVED_NAME.fullmatch(served_name):
        return Check(
            "served name",
            "failed",
            "it is empty, too long or has blanks",
            "give the folder a plain name in serving.models, and serve it by that",
            ConfigurationError,
        )
    names = _values_of("--served-model-name", arguments)
    if names and served_name not in names:
        return Check(
            "served name", "failed", f"requests would name {served_name}, the server {', '.join(names)}",
            "leave --served-model-name out of serving.extra_arguments", ConfigurationError,
        )  # fmt: skip
    return Check("served name", "ok", served_name)


def _values_of(flag: str, arguments: Sequence[str]) -> list[str]:
    """The values of the last time that the flag is given."""
    values: list[str] = []
    position = 0
    while position < len(arguments):
        head, joined, value = arguments[position].partition("=")
        position += 1
        if "--" + head[2:].replace("_", "-") != flag:
            continue
        values = [value] if joined else []
        while not joined and position < len(arguments) and not arguments[position].startswith("-"):
            values.append(arguments[position])
            position += 1
    return values


def _value_of(flag: str, arguments: Sequence[str]) -> str | None:
    values = _values_of(flag, arguments)
    return values[0] if values else None
