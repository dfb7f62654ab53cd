"""What would make a model fit that does not, each computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from docmill.models.gpus import Gpu
from docmill.models.memory import MemoryPlan, memory_plan
from docmill.models.profile import ModelProfile
from docmill.models.splitting import possible_sizes
from docmill.models.variants import ONLINE, variants_of

LEAST_CONTEXT = 4096
"""A shorter context holds no page with its answer."""
HIGH_UTILIZATION = 0.95
"""As much of a GPU as vLLM may take where nothing else runs on it."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What the model does not fit: the GPUs, the context of one request in tokens, and the settings in force.

    ``asked`` is the tensor-parallel size that was asked for; None where it is free.
    """

    gpu: Gpu
    count: int
    length: int
    utilization: float
    max_num_seqs: int | None = None
    asked: int | None = None

    def best(self, profile: ModelProfile, *, utilization: float | None = None) -> tuple[int, MemoryPlan] | None:
        """The smallest split over these GPUs that holds one request, else the roomiest; None where none is possible."""
        found = None
        for size in possible_sizes(profile, self.count):
            memory = self.memory(profile, size, utilization=utilization)
            if found is None or memory.kv_tokens > found[1].kv_tokens:
                found = size, memory
            if memory.kv_tokens >= self.length:
                break
        return found

    def memory(self, profile: ModelProfile, size: int, *, utilization: float | None = None) -> MemoryPlan:
        """Of one of ``size`` GPUs."""
        share = utilization or self.utilization
        return memory_plan(profile, self.gpu, size, utilization=share, sequences=self.max_num_seqs)

    def split(self, size: int) -> str:
        """What to say of a remedy over ``size`` GPUs: it holds only so, where another size was asked for."""
        return "" if self.asked in (None, size) else f", tensor parallel {size}"

    def fewest(self, profile: ModelProfile) -> int | None:
        """How many of these GPUs one server would need; None where not even 64 do."""
        sizes = possible_sizes(profile)
        return next((size for size in sizes if self.memory(profile, size).kv_tokens >= self.length), None)


def remedies(profile: ModelProfile, needs: Needs) -> list[str]:
    """In the order in which one would try them; never empty."""
    return [
        *_shorter(profile, needs),
        *_more_of_each(profile, needs),
        *_smaller(profile, needs),
        *_more_gpus(profile, needs),
    ] or ["GPUs with more memory"]


def computes(gpu: Gpu, profile: ModelProfile) -> bool:
    """Whether the GPU computes with the numbers that the weights are stored in."""
    method = profile.quantization.method.lower() if profile.quantization is not None else "bf16"
    return (gpu.fp4 or "fp4" not in method) and (gpu.fp8 or "fp8" not in method) and (gpu.bf16 or method != "bf16")


def _shorter(profile: ModelProfile, needs: Needs) -> Iterator[str]:
    found = needs.best(profile)
    if found is not None and LEAST_CONTEXT <= found[1].kv_tokens < needs.length:
        yield f"a shorter context: --max-model-len {found[1].kv_tokens // 1024 * 1024}{needs.split(found[0])}"


def _more_of_each(profile: ModelProfile, needs: Needs) -> Iterator[str]:
    if needs.utilization >= HIGH_UTILIZATION:
        return
    found = needs.best(profile, utilization=HIGH_UTILIZATION)
    if found is not None and found[1].kv_tokens >= needs.length:
        share = f"serving.gpu_memory_utilization = {HIGH_UTILIZATION}{needs.split(found[0])}"
        yield f"more of each GPU: {share} ({found[1].kv_tokens:,} tokens)"


def _smaller(profile: ModelProfile, needs: Needs) -> Iterator[str]:
    """Checkpoints with smaller weights, those first that the GPU computes with; else the checkpoint made smaller."""
    others = [each for each in variants_of(profile) if each.quantization is not None]
    online = profile.model_copy(update={"quantization": ONLINE["fp8"]})
    if profile.quantization is None and needs.gpu.fp8 and not any("fp8" in each.name for each in others):
        others.append(online)
    native = [each for each in others if computes(needs.gpu, each)]
    for each in native or others:
        found = needs.best(each)
        if found is None or found[1].kv_tokens < needs.length:
            continue
        name = "--quantization fp8" if each is online else each.name
        over = needs.split(found[0]) or (f" over {found[0]} GPUs" if found[0] > 1 else "")
        yield f"smaller weights: {name}{over} ({found[1].kv_tokens:,} tokens)"


def _more_gpus(profile: ModelProfile, needs: Needs) -> Iterator[str]:
    fewest = needs.fewest(profile)
    if fewest is not None and fewest > needs.count:
        yield f"more GPUs: {fewest} x {needs.gpu.name}{needs.split(fewest)}"
    if any(_smaller(profile, needs)):
        return
    for each in variants_of(profile):
        if each.quantization is None or not computes(needs.gpu, each):
            continue
        size = needs.fewest(each)
        if size is not None and (fewest is None or size < fewest):
            yield f"{size} x {needs.gpu.name} with {each.name}{needs.split(size)}"
            return
