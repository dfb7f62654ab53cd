"""Which tensor-parallel sizes a model allows."""

from __future__ import annotations

from docmill.model_failures import ParallelSizeImpossible
from docmill.models.profile import ModelProfile

LARGEST = 64


def why_not(profile: ModelProfile, size: int) -> str:
    """Why the model cannot be cut over ``size`` GPUs; empty where it can.

    vLLM cuts attention by heads, repeats key-value heads where there are more GPUs than heads, pads the vocabulary to a
    multiple of 64, and cuts the vision part by its heads unless each GPU holds it whole.
    """
    text, vision = profile.text, profile.vision
    if size < 1:
        return "it must be at least 1"
    if text.heads % size:
        return f"{text.heads} attention heads do not divide by {size}"
    if text.kv_heads % size and size % text.kv_heads:
        return f"{text.kv_heads} key-value heads neither divide by {size} nor into it"
    if not profile.encoder_data_parallel and vision.heads % size:
        return f"the vision part's {vision.heads} heads do not divide by {size}"
    if -(-text.vocabulary // 64) * 64 % size:
        return f"the vocabulary of {text.vocabulary} does not divide by {size}"
    group = profile.quantization.group if profile.quantization is not None else 0
    whole = text.experts and profile.expert_parallel
    for width in {text.intermediate if not whole else 0, text.dense_intermediate, text.shared_intermediate} - {0}:
        if width % size:
            return f"feed-forward layers of {width} do not divide by {size}"
        if 1 < group <= 1024 and (width // size) % group:
            return f"feed-forward layers of {width} over {size} GPUs do not divide into groups of {group}"
    if whole and text.experts % size:
        return f"{text.experts} experts do not divide by {size}"
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
