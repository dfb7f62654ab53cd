"""Which GPUs a model needs, how it is best spread over those there are, and how many pages it then reads at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from docmill.model_failures import NotEnoughGpuMemory
from docmill.models.gpus import GIB, Gpu
from docmill.models.memory import UTILIZATION, MemoryPlan, batch_defaults, memory_plan
from docmill.models.profile import ModelProfile
from docmill.models.remedies import Needs, computes, remedies
from docmill.models.splitting import possible_sizes, require_size
from docmill.models.variants import quantized
from docmill.models.visual_tokens import ResizedPage, resized_page

PROMPT_TOKENS = 700
"""Instructions and schema of a document type, roughly."""
ANSWER_TOKENS = 1000
"""A full form's JSON, roughly."""
ROOM_PAGES = 8
"""A split that leaves the KV cache room for fewer pages at once than this is taken only where there is no better."""
A4_200_DPI = (1654, 2339)


@dataclass(frozen=True, slots=True)
class PageEstimate:
    """One page's tokens: ``visual`` + ``prompt`` + ``answer`` = ``total``; whether that fits the context."""

    width: int
    height: int
    resized: ResizedPage
    visual: int
    prompt: int
    answer: int
    total: int
    fits: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """How a model is served on given GPUs.

    Attributes:
        gpu, gpu_count: what there is.
        tensor_parallel_size: GPUs of one server.
        replicas: servers beside each other.
        possible_sizes: the tensor-parallel sizes that the model allows.
        memory: of one GPU.
        max_model_len: context of one request.
        pages_at_once: that one server's KV cache holds (and vLLM works on); all servers: times ``replicas``.
        fits: whether it can be served so at all.
        reasons: why it is split so, or why it does not fit.
        advice: what would make it fit, each computed.
        warnings: what to mind.
    """

    profile: ModelProfile
    gpu: Gpu
    gpu_count: int
    tensor_parallel_size: int
    replicas: int
    possible_sizes: tuple[int, ...]
    memory: MemoryPlan
    max_model_len: int
    page: PageEstimate
    pages_at_once: int
    fits: bool
    reasons: tuple[str, ...]
    advice: tuple[str, ...]
    warnings: tuple[str, ...]


def plan(
    profile: ModelProfile,
    gpu: Gpu,
    gpu_count: int,
    *,
    max_model_len: int | None = None,
    concurrency: int | None = None,
    quantization: str | None = None,
    tensor_parallel_size: int | None = None,
    utilization: float = UTILIZATION,
    max_num_seqs: int | None = None,
    page: tuple[int, int] = A4_200_DPI,
) -> Plan:
    """The best way to serve the model on ``gpu_count`` GPUs of one kind.

    Args:
        profile: the model.
        gpu: the kind of GPU.
        gpu_count: how many there are, at least 1.
        max_model_len: context of one request in tokens; the profile's by default.
        concurrency: pages that each server is to read at once; more GPUs are given to one where that takes them.
        quantization: a method (awq, gptq-int4, fp8…), or None for the profile's own.
        tensor_parallel_size: None: the best.
        utilization: share of each GPU's memory that vLLM takes.
        max_num_seqs: requests that vLLM works on at once; its own default where None.
        page: width and height in pixels of the page to estimate.

    Raises:
        ParallelSizeImpossible: the size that is asked for does not divide the model.
        PageTooLarge: the model refuses a page of that shape.
        ConfigurationError: the model is not to be had with that quantisation.
    """
    profile = quantized(profile, quantization)
    length = max_model_len or profile.max_model_len
    estimate = page_estimate(profile, page, length)
    seqs = max_num_seqs or batch_defaults(gpu)[1]
    wanted = concurrency or ROOM_PAGES

    def memory_of(size: int) -> MemoryPlan:
        return memory_plan(profile, gpu, size, utilization=utilization, sequences=max_num_seqs)

    def pages_of(size: int) -> int:
        return min(seqs, memory_of(size).kv_tokens // estimate.total)

    if tensor_parallel_size is not None:
        require_size(profile, tensor_parallel_size)
    sizes = [tensor_parallel_size] if tensor_parallel_size else possible_sizes(profile, gpu_count)
    enough = [size for size in sizes if memory_of(size).kv_tokens >= length]
    roomy = [size for size in enough if pages_of(size) >= wanted]
    size = (roomy or enough[-1:] or sizes[-1:])[0]
    fits = bool(enough) and size <= gpu_count
    replicas = max(1, gpu_count // size)
    needs = Needs(gpu, gpu_count, length, utilization, max_num_seqs, tensor_parallel_size)
    return Plan(
        profile=profile,
        gpu=gpu,
        gpu_count=gpu_count,
        tensor_parallel_size=size,
        replicas=replicas,
        possible_sizes=tuple(possible_sizes(profile)),
        memory=memory_of(size),
        max_model_len=length,
        page=estimate,
        pages_at_once=pages_of(size) if fits and estimate.fits else 0,
        fits=fits,
        reasons=tuple(_reasons(profile, gpu, size, replicas, gpu_count, memory_of, length, fits, concurrency)),
        advice=() if fits else tuple(_advice(profile, needs, tensor_parallel_size)),
        warnings=tuple(
            _warnings(profile, gpu, estimate, length, wanted, pages_of(size), seqs, size, replicas, gpu_count)
        ),
    )


def require_fit(found: Plan) -> None:
    """Nothing where the plan fits.

    Raises:
        NotEnoughGpuMemory: with what would make it fit.
    """
    if not found.fits:
        raise NotEnoughGpuMemory(
            "; ".join(found.reasons), remedy="; ".join(found.advice) or NotEnoughGpuMemory.default_remedy
        )


def page_estimate(
    profile: ModelProfile,
    page: tuple[int, int],
    max_model_len: int,
    *,
    prompt_tokens: int = PROMPT_TOKENS,
    answer_tokens: int = ANSWER_TOKENS,
) -> PageEstimate:
    """A page's tokens; width and height in pixels."""
    resized = resized_page(*page, profile.vision, profile.family)
    visual = resized.tokens + 2
    total = visual + prompt_tokens + answer_tokens
    return PageEstimate(*page, resized, visual, prompt_tokens, answer_tokens, total, total <= max_model_len)


def _reasons(
    profile: ModelProfile,
    gpu: Gpu,
    size: int,
    replicas: int,
    count: int,
    memory_of: Callable[[int], MemoryPlan],
    length: int,
    fits: bool,
    concurrency: int | None,
) -> list[str]:
    memory = memory_of(size)
    if not fits:
        weights = f"{memory.weights / GIB:.1f} GiB of weights on each {gpu.name}"
        if size > count:
            return [f"a server over {size} GPUs is asked for, but there {'is' if count == 1 else 'are'} only {count}"]
        if memory.kv_cache <= 0:
            work = (memory.activations + memory.other) / GIB
            return [
                f"{weights} and {work:.1f} GiB that vLLM works with are more than the {memory.usable / GIB:.1f} GiB "
                "that it may use"
            ]
        return [
            f"{weights} leave room for {memory.kv_tokens:,} tokens of KV cache, fewer than one request of {length:,}"
        ]
    if size == 1 and count > 1:
        return [f"it fits one GPU: {replicas} replicas read more pages a second than one server over {count} GPUs"]
    if size == 1:
        return ["it fits one GPU"]
    fewest = next((s for s in possible_sizes(profile, size) if memory_of(s).kv_tokens >= length), size)
    if fewest == size:
        told = [f"{size} GPUs are the fewest that hold it with room for its KV cache"]
    elif concurrency is not None:
        asked = f"{concurrency} pages at once are asked for: {size} GPUs for one server"
        told = [f"{fewest} {'GPU holds' if fewest == 1 else 'GPUs hold'} it; {asked}"]
    else:
        told = [f"{fewest} {'GPU holds' if fewest == 1 else 'GPUs hold'} it, but with room for few pages at once"]
    if replicas > 1:
        told.append(f"{replicas} replicas of {size} GPUs each")
    return told


def _advice(profile: ModelProfile, needs: Needs, asked: int | None) -> list[str]:
    """What would make it fit; where a size was asked for, first of all another one."""
    if asked is not None:
        found = needs.best(profile)
        if found is not None and found[1].kv_tokens >= needs.length:
            return [f"tensor parallel {found[0]} on these GPUs"]
        if asked > needs.count and needs.memory(profile, asked).kv_tokens >= needs.length:
            return [f"more GPUs: {asked} x {needs.gpu.name}"]
    return remedies(profile, needs)


def _warnings(
    profile: ModelProfile,
    gpu: Gpu,
    page: PageEstimate,
    length: int,
    wanted: int,
    pages: int,
    sequences: int,
    size: int,
    replicas: int,
    count: int,
) -> list[str]:
    told = []
    if not page.fits:
        told.append(
            f"a page of {page.width} x {page.height} takes {page.total:,} tokens and does not fit the context of "
            f"{length:,}: raise --max-model-len to {-(-page.total // 1024) * 1024:,}, or draw pages smaller"
        )
    if length > profile.context:
        told.append(f"a context of {length:,} is longer than the {profile.context:,} that the model was made for")
    if 0 < pages < wanted:
        limit = "vLLM works on" if pages == sequences else "the KV cache holds"
        more = " (serving.max_num_seqs raises that)" if pages == sequences else ""
        told.append(f"{limit} {pages} pages at once{more}, fewer than the {wanted} wanted: the others wait")
    if not computes(gpu, profile):
        method = profile.quantization.method if profile.quantization is not None else "bfloat16"
        told.append(f"{gpu.name} does not compute with {method}: slower, or refused by vLLM")
    idle = count - size * replicas
    if 0 < idle < count:
        told.append(f"{idle} of {count} GPUs stay idle: no size that the model allows uses them all")
    return told
