"""Which tensor-parallel sizes a model allows."""

from __future__ import annotations

from docmill.model_failures import ParallelSizeImpossible
from docmill.models.profile import ModelProfile
from docmill.models.weights import padded_vocabulary

LARGEST = 64


def why_not(profile: ModelProfile, size: int) -> str:
    """Why the model cannot be cut over ``size`` GPUs; empty where it can.

    vLLM cuts attention by heads, repeats key-value heads where there are more GPUs than heads, pads the vocabulary to a
    multiple of 64, and cuts the vision part by its heads unless each GPU holds it whole
    (``verify_with_parallel_config`` in vllm/config/model.py, ``QKVParallelLinear``, ``divide``; 0.24 to 0.33).
    """
    text, vision = profile.text, profile.vision
    if size < 1:
        return "it must be at least 1"
    if text.heads % size:
        return f"{text.heads} attention heads do not divide by {size}"
    if text.kv_heads % size and size % text.kv_heads:
        return f"{text.kv_heads} key-value heads neither divide by {size} nor into it"
    if padded_vocabulary(text.vocabulary) % size:
        return f"the vocabulary of {text.vocabulary} does not divide by {size}"
    if not profile.encoder_data_parallel:
        if vision.heads % size:
            return f"the vision part's {vision.heads} heads do not divide by {size}"
        if vision.intermediate % size:
            return f"the vision part's feed-forward layers of {vision.intermediate} do not divide by {size}"
    return _feed_forward(profile, size)


def _feed_forward(profile: ModelProfile, size: int) -> str:
    """Groups of a quantised matrix that share a scale must not be cut; experts are cut or spread."""
    text, quantization = profile.text, profile.quantization
    whole = bool(text.experts) and profile.expert_parallel
    if whole and text.experts % size:
        return f"{text.experts} experts do not divide by {size}"
    cut = {} if whole else {"experts" if text.experts else "feed-forward layers": text.intermediate}
    cut |= {"dense layers": text.dense_intermediate if text.dense_layers else 0,
            "shared experts": text.shared_intermediate}  # fmt: skip
    for what, width in cut.items():
        if width % size:
            return f"{what} of {width} do not divide by {size}"
        own = quantization is not None and not (quantization.experts_only and what != "experts")
        unit = (quantization.block or quantization.group) if quantization is not None and own else 0
        if size > 1 and unit and (width // size) % unit:
            return f"{what} of {width} over {size} GPUs do not divide into groups of {unit}"
    return ""


def possible_sizes(profile: ModelProfile, most: int = LARGEST) -> list[int]:
    """The sizes up to ``most`` that the model allows."""
    return [size for size in range(1, most + 1) if not why_not(profile, size)]


def require_size(profile: ModelProfile, size: int) -> None:
    """Nothing where the size is possible.

    Raises:
        ParallelSizeImpossible: saying what does not divide, and which sizes are possible.
    """
    reason = why_not(profile, size)
    if reason:
        sizes = ", ".join(map(str, possible_sizes(profile)))
        raise ParallelSizeImpossible(
            f"{profile.name} cannot be cut over {size} GPUs: {reason}", remedy=f"possible are {sizes}"
        )
