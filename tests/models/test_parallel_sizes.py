"""Which tensor-parallel sizes a model allows."""

from typing import Any

import pytest

from docmill.model_failures import ParallelSizeImpossible
from docmill.models.naming import load_profile
from docmill.models.profile import ModelProfile
from docmill.models.splitting import possible_sizes, require_size, why_not

SIZES = {
    "qwen2-vl-2b": [1, 2, 4],
    "qwen2-vl-7b": [1, 2, 4],  # 7 divides its 28 heads, but neither its 4 key-value heads nor the vision part's 16
    "qwen2-vl-72b": [1, 2, 4, 8, 16],
    "qwen2-vl-72b-awq": [1, 2, 4, 8],  # its groups of 128 are cut by 16
    "qwen2-vl-7b-awq": [1, 2, 4],
    "qwen2.5-vl-3b": [1, 2, 4],  # 8: the vision part's 3420
    "qwen2.5-vl-32b": [1, 2, 4, 8],
    "qwen2.5-vl-72b": [1, 2, 4, 8, 16],
    "qwen3-vl-4b-fp8": [1, 2, 4],
    "qwen3-vl-8b": [1, 2, 4, 8, 16],
    "qwen3-vl-8b-fp8": [1, 2, 4, 8, 16],
    "qwen3-vl-30b-a3b": [1, 2, 4, 8, 16],
    "qwen3-vl-235b-a22b": [1, 2, 4, 8, 16],
    "qwen3-vl-235b-a22b-fp8": [1, 2, 4, 8, 16],  # with its experts spread, whose 1536 would not be cut by 8
    "minimax-m3": [1, 2, 4, 8, 16, 32, 64],
}


@pytest.mark.parametrize(("name", "sizes"), SIZES.items(), ids=list(SIZES))
def test_possible_sizes(name: str, sizes: list[int]) -> None:
    assert possible_sizes(load_profile(name)) == sizes


def changed(text: dict[str, Any] | None = None, vision: dict[str, Any] | None = None, **more: Any) -> ModelProfile:
    """A 7B with other sizes."""
    base = load_profile("qwen2-vl-7b")
    parts = {"text": base.text.model_dump() | (text or {}), "vision": base.vision.model_dump() | (vision or {})}
    return ModelProfile.model_validate(base.model_dump() | parts | more)


@pytest.mark.parametrize(
    ("profile", "size", "told"),
    [
        (changed(), 0, "at least 1"),
        (changed(), 3, "28 attention heads do not divide by 3"),
        (changed(), 7, "4 key-value heads neither divide by 7 nor into it"),
        (changed({"kv_heads": 28, "vocabulary": 152000}, {"heads": 14}), 14, "vocabulary of 152000"),
        (changed({"heads": 32, "kv_heads": 8}), 32, "vision part's 16 heads"),
        (changed(vision={"intermediate": 3421}), 2, "vision part's feed-forward layers of 3421"),
        (changed({"intermediate": 18945}), 2, "feed-forward layers of 18945 do not divide"),
        (
            changed(
                {"intermediate": 29568}, quantization={"method": "awq", "bits": 4, "group": 128, "group_bytes": 2.5}
            ),
            2,
            "feed-forward layers of 29568 over 2 GPUs do not divide into groups of 128",
        ),
    ],
)
def test_why_not(profile: ModelProfile, size: int, told: str) -> None:
    assert told in why_not(profile, size)


def moe(**more: Any) -> ModelProfile:
    base = load_profile("qwen3-vl-235b-a22b-fp8")
    return ModelProfile.model_validate(base.model_dump() | {"expert_parallel": False} | more)


def test_blocks_of_cut_experts_stay_whole() -> None:
    assert why_not(moe(), 4) == ""
    assert why_not(moe(), 8) == "experts of 1536 over 8 GPUs do not divide into groups of 128"


def test_spread_experts_must_divide_themselves() -> None:
    text = load_profile("qwen3-vl-235b-a22b").text.model_dump() | {"experts": 129}
    assert why_not(moe(text=text, expert_parallel=True), 2) == "129 experts do not divide by 2"


def test_key_value_heads_are_repeated_beyond_their_number() -> None:
    assert why_not(load_profile("qwen3-vl-30b-a3b"), 16) == ""


def test_a_whole_vision_part_puts_no_limit() -> None:
    assert "vision" in why_not(load_profile("qwen3-vl-8b"), 32)
    assert why_not(load_profile("qwen3-vl-8b").model_copy(update={"encoder_data_parallel": True}), 32) == ""


def test_an_impossible_size_is_told_with_the_possible_ones() -> None:
    with pytest.raises(ParallelSizeImpossible, match="28 attention heads do not divide by 3") as caught:
        require_size(load_profile("qwen2-vl-7b"), 3)
    assert caught.value.remedy == "possible are 1, 2, 4"
    require_size(load_profile("qwen2-vl-7b"), 4)
