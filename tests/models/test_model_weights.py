"""Parameters and bytes, against what is published and what vLLM measured."""

import pytest

from docmill.models.naming import load_profile, profile_names
from docmill.models.profile import Family
from docmill.models.weights import bytes_per_gpu, padded_vocabulary, parameter_counts

PUBLISHED = {  # of the checkpoints' safetensors headers
    "qwen2-vl-2b": 2_208_985_600,
    "qwen2-vl-7b": 8_291_375_616,
    "qwen2-vl-72b": 73_405_560_320,
    "qwen2.5-vl-3b": 3_754_622_976,
    "qwen2.5-vl-7b": 8_292_166_656,
    "qwen2.5-vl-32b": 33_452_718_336,
    "qwen2.5-vl-72b": 73_410_777_344,
    "qwen3-vl-4b": 4_437_815_808,
    "qwen3-vl-8b": 8_767_123_696,
    "qwen3-vl-32b": 33_357_390_064,
    "qwen3-vl-30b-a3b": 31_070_754_032,
    "qwen3-vl-235b-a22b": 235_670_022_896,
    "minimax-m3": 427_040_140_160,
}
GIB = 2**30


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items(), ids=list(PUBLISHED))
def test_parameters_are_counted_to_the_last_one(name: str, count: int) -> None:
    assert parameter_counts(load_profile(name)).total == count
    assert load_profile(name).parameters == count


def test_every_count_that_the_catalog_gives_is_held_here() -> None:
    given = {name: load_profile(name).parameters for name in profile_names()}
    assert {name: count for name, count in given.items() if count is not None} == PUBLISHED


@pytest.mark.parametrize("name", [n for n in PUBLISHED if n != "minimax-m3"])
def test_a_16_bit_model_on_one_gpu_takes_two_bytes_each(name: str) -> None:
    profile = load_profile(name)
    padding = (padded_vocabulary(profile.text.vocabulary) - profile.text.vocabulary) * profile.text.hidden
    assert padding == 0
    assert bytes_per_gpu(profile, 1) == 2 * PUBLISHED[name]


def test_minimax_m3s_checkpoint_has_its_routers_and_patches_in_32_bits() -> None:
    profile = load_profile("minimax-m3")
    patches = 3 * profile.vision.temporal * profile.vision.patch**2 * profile.vision.hidden
    counts = parameter_counts(profile)
    assert 2 * counts.total + 2 * (counts.routers + patches) == 854_172_958_720  # bytes of the released tensors


@pytest.mark.parametrize(
    ("name", "gigabytes"),
    [
        ("minimax-m3-mxfp8", 444),  # published sizes, in 10^9 bytes
        ("minimax-m3-nvfp4", 260),
    ],
)
def test_quantised_weights_are_as_large_as_they_lie_on_the_disk(name: str, gigabytes: float) -> None:
    assert bytes_per_gpu(load_profile(name), 1) / 1e9 == pytest.approx(gigabytes, rel=0.02)


def test_what_stays_in_16_bits_when_the_decoder_is_quantised() -> None:
    profile = load_profile("qwen2-vl-7b-awq")
    counts = parameter_counts(profile)
    packed = (counts.attention + counts.dense) * (0.5 + 2.5 / 128)
    assert bytes_per_gpu(profile, 1) == round(packed + 2 * (counts.total - counts.attention - counts.dense))


@pytest.mark.parametrize("size", [2, 4, 8])
def test_what_is_on_every_gpu_is_counted_on_every_gpu(size: int) -> None:
    profile = load_profile("qwen2-vl-72b")
    counts = parameter_counts(profile)
    assert bytes_per_gpu(profile, size) == round(2 * ((counts.total - counts.small) / size + counts.small))


def test_the_vision_part_is_whole_on_each_gpu_where_it_works_data_parallel() -> None:
    whole = load_profile("minimax-m3")
    cut = whole.model_copy(update={"encoder_data_parallel": False})
    vision = parameter_counts(whole).vision
    assert bytes_per_gpu(whole, 8) - bytes_per_gpu(cut, 8) == pytest.approx(2 * vision * 7 / 8, abs=1)


def test_key_value_heads_are_repeated_beyond_their_number() -> None:
    profile = load_profile("qwen3-vl-30b-a3b")
    counts = parameter_counts(profile)
    rest = counts.total - counts.keys - counts.small - counts.routers
    alone = counts.small + counts.routers
    assert bytes_per_gpu(profile, 8) == round(2 * (rest / 8 + counts.keys / 4 + alone))
    assert counts.keys == 48 * 2048 * 2 * 4 * 128


@pytest.mark.parametrize(("vocabulary", "rows"), [(152064, 152064), (151936, 151936), (1000, 1024), (1, 64)])
def test_the_vocabulary_is_padded_to_64(vocabulary: int, rows: int) -> None:
    assert padded_vocabulary(vocabulary) == rows


def test_an_odd_vocabulary_costs_its_padding() -> None:
    profile = load_profile("qwen2-vl-7b")
    odd = profile.model_copy(update={"text": profile.text.model_copy(update={"vocabulary": 152001})})
    assert bytes_per_gpu(odd, 1) == bytes_per_gpu(profile, 1)


def test_a_tied_output_is_counted_once() -> None:
    profile = load_profile("qwen2-vl-2b")
    counts = parameter_counts(profile)
    assert counts.output == 0
    untied = profile.model_copy(update={"text": profile.text.model_copy(update={"tied": False})})
    assert parameter_counts(untied).total - counts.total == 151936 * 1536


def test_every_family_has_a_vision_part() -> None:
    seen = {load_profile(name).family: parameter_counts(load_profile(name)).vision for name in PUBLISHED}
    assert set(seen) == set(Family)
    assert all(4e8 < count < 1e9 for count in seen.values())
