"""What vLLM keeps free of a GPU's memory for the KV cache.

vLLM takes ``gpu_memory_utilization`` of the GPU, subtracts the weights and the most that a trial run needed, and gives
the rest to the KV cache (vllm/v1/worker/gpu_worker.py, ``determine_available_memory``, 0.24). Its terms were fitted
to what vLLM 0.24 logged on an H200 for Qwen2-VL 2B, 7B and half a 72B at TP 1, and those of more than one GPU to the
whole 72B at TP 2 (docs/gpu.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from docmill.models.gpus import GIB, Gpu
from docmill.models.profile import ModelProfile
from docmill.models.weights import bytes_per_gpu

UTILIZATION = 0.9
KV_BYTES = 2
"""Of one number in a 16-bit cache."""
BLOCK_TOKENS = 16
"""Tokens of one block of the cache, unless the profile asks for others."""

LOADING_BYTES = 0.13 * GIB
"""What "Model loading took" says above the weights."""
OUTSIDE_TORCH_BYTES = 0.25 * GIB
"""Growth outside torch's allocator in the trial run (cuBLAS workspaces and the like)."""
COMMUNICATION_BYTES = 0.5 * GIB
"""NCCL's and the custom all-reduce's buffers with more than one GPU."""
VISION_COPIES = 16
"""Copies of a patch's hidden state (16 bits) that are alive at the peak of the vision part; half of them are cut."""
GRAPH_BYTES_PER_LAYER = 0.0089 * GIB
GRAPH_BYTES_PER_HIDDEN = 2.09e-6 * GIB
"""CUDA graphs: for each layer so much, and so much for each element of the hidden state on one GPU."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """One GPU's memory, in bytes.

    Attributes:
        total: the GPU's; ``usable`` is the share that vLLM takes.
        weights, activations, other: what the KV cache does not get.
        kv_cache: what is left for it; 0 or less where nothing is.
        kv_bytes_per_token: on one GPU.
        kv_tokens: what fits, in whole blocks.
    """

    total: int
    usable: int
    weights: int
    activations: int
    other: int
    kv_cache: int
    kv_bytes_per_token: int
    kv_tokens: int


def batch_defaults(gpu: Gpu) -> tuple[int, int]:
    """What vLLM takes for max_num_batched_tokens and max_num_seqs where they are not given.

    ``EngineArgs.get_batch_defaults`` in vllm/engine/arg_utils.py, for its server. The batch of 16,384 for GPUs of
    160 GiB and more came between 0.24 and 0.32; with the older one there is a little more room than planned.
    """
    if gpu.memory_gib >= 160:
        return 16384, 1024
    return (8192, 1024) if gpu.memory_gib >= 70 and "A100" not in gpu.name.upper() else (2048, 256)


def kv_bytes_per_token(profile: ModelProfile, tensor_parallel_size: int) -> int:
    """Bytes that one token takes in one GPU's KV cache.

    Key and value of each kept head in each layer; with more GPUs than heads, heads are repeated. A sparse layer's index
    keys come on top, whole on each GPU.
    """
    text = profile.text
    heads = max(1, text.kv_heads // tensor_parallel_size)
    cached = text.layers * 2 * heads * text.head_dim
    if text.index_heads:
        cached += (text.layers - text.dense_layers) * text.index_dim
    return cached * KV_BYTES


def activation_bytes(profile: ModelProfile, tensor_parallel_size: int, batched_tokens: int, sequences: int) -> int:
    """The trial run's peak above the weights: the vision part at its largest picture, or the decoder's full batch."""
    text, vision = profile.text, profile.vision
    parts = 1 if profile.encoder_data_parallel else tensor_parallel_size
    visual = max(vision.max_tokens, batched_tokens)
    copies = VISION_COPIES / 2 * (1 + 1 / parts)
    seeing = visual * vision.merge**2 * vision.hidden * copies * 2 + visual * text.hidden * 2
    widest = max(text.intermediate, text.dense_intermediate)
    routed = text.experts_per_token if text.experts else 1
    reading = batched_tokens * 2 * (4 * text.hidden + 3 * widest * routed / tensor_parallel_size)
    writing = sequences * text.vocabulary * 4 * 2
    return round(max(seeing, reading, writing))


def graph_bytes(profile: ModelProfile, tensor_parallel_size: int) -> int:
    """What vLLM sets aside for CUDA graphs."""
    text = profile.text
    each = GRAPH_BYTES_PER_LAYER + GRAPH_BYTES_PER_HIDDEN * text.hidden / tensor_parallel_size
    return round(text.layers * each)


def memory_plan(
    profile: ModelProfile,
    gpu: Gpu,
    tensor_parallel_size: int,
    *,
    utilization: float = UTILIZATION,
    sequences: int | None = None,
) -> MemoryPlan:
    """How one of ``tensor_parallel_size`` GPUs is filled."""
    batched, most = batch_defaults(gpu)
    weights = bytes_per_gpu(profile, tensor_parallel_size) + round(LOADING_BYTES)
    activations = activation_bytes(profile, tensor_parallel_size, batched, sequences or most)
    other = OUTSIDE_TORCH_BYTES + (COMMUNICATION_BYTES if tensor_parallel_size > 1 else 0)
    other += graph_bytes(profile, tensor_parallel_size)
    usable = round(gpu.memory_bytes * utilization)
    left = usable - weights - activations - round(other)
    each = kv_bytes_per_token(profile, tensor_parallel_size)
    block = block_tokens(profile)
    tokens = max(0, math.floor(left / (each * block)) * block)
    return MemoryPlan(gpu.memory_bytes, usable, weights, activations, round(other), left, each, tokens)


def block_tokens(profile: ModelProfile) -> int:
    """Tokens of a block of the KV cache."""
    if "--block-size" in profile.arguments:
        return int(profile.arguments[profile.arguments.index("--block-size") + 1])
    return BLOCK_TOKENS
