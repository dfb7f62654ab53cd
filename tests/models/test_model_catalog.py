"""The catalog: every profile is one that can exist, and names lead to it."""

from pathlib import Path

import pytest

from docmill.failures import ConfigurationError
from docmill.model_failures import ModelNotFound
from docmill.models.catalog_files import FOLDER, read_profiles
from docmill.models.gpus import parse_gpus
from docmill.models.memory import memory_plan
from docmill.models.naming import load_profile, profile_names
from docmill.models.profile import ModelProfile
from docmill.models.splitting import possible_sizes
from docmill.models.weights import parameter_counts

WANTED = {
    *(f"qwen2-vl-{size}{kind}" for size in ("2b", "7b", "72b") for kind in ("", "-awq", "-gptq-int4", "-gptq-int8")),
    *(f"qwen2.5-vl-{size}{kind}" for size in ("3b", "7b", "32b", "72b") for kind in ("", "-awq")),
    *(f"qwen3-vl-{size}" for size in ("4b", "8b", "32b", "30b-a3b", "235b-a22b")),
    *("minimax-m3", "minimax-m3-mxfp8", "minimax-m3-nvfp4"),
}
PROFILES = [load_profile(name) for name in profile_names()]


def test_every_model_that_was_promised_is_there() -> None:
    assert set(profile_names()) >= WANTED


@pytest.mark.parametrize("profile", PROFILES, ids=profile_names())
def test_a_profile_describes_a_model_that_can_be_served(profile: ModelProfile) -> None:
    text = profile.text
    assert profile.hub_id.count("/") == 1
    assert profile.max_model_len <= profile.context
    assert text.heads % text.kv_heads == 0
    assert profile.vision.max_tokens < profile.max_model_len or profile.vision.max_tokens == 16384
    assert {1, 2} <= set(possible_sizes(profile))
    assert (
        memory_plan(profile, parse_gpus("B300")[1], max(possible_sizes(profile, 8))).kv_tokens > profile.max_model_len
    )
    assert (profile.quantization is None) == (profile.base is None)


@pytest.mark.parametrize("profile", PROFILES, ids=profile_names())
def test_boxes_are_written_as_the_family_does(profile: ModelProfile) -> None:
    convention = {"qwen2_vl": "relative_1000", "qwen2_5_vl": "resized_pixels", "qwen3_vl": "relative_1000"}
    assert profile.boxes == convention.get(profile.family, "none")
    assert profile.vision.factor == (32 if profile.family == "qwen3_vl" else 28)


def test_variants_say_only_what_differs() -> None:
    base, variant = load_profile("qwen2-vl-7b"), load_profile("qwen2-vl-7b-awq")
    same = {"name", "hub_id", "quantization", "base", "parameters"}
    assert variant.base == "qwen2-vl-7b"
    assert variant.model_dump(exclude=same) == base.model_dump(exclude=same)


def test_minimax_m3_is_started_as_its_makers_say() -> None:
    profile = load_profile("minimax-m3")
    assert profile.hub_id == "MiniMaxAI/MiniMax-M3"
    assert profile.architecture == "MiniMaxM3SparseForConditionalGeneration"
    assert round(parameter_counts(profile).total / 1e9) == 427
    assert profile.request_extra == {"chat_template_kwargs": {"thinking_mode": "disabled"}}
    assert (profile.max_model_len, profile.context) == (131072, 1048576)
    assert profile.notes


@pytest.mark.parametrize(
    "name", ["qwen2-vl-7b", "QWEN2-VL-7B", "Qwen/Qwen2-VL-7B-Instruct", "qwen/qwen2-vl-7b-instruct"]
)
def test_names_and_hub_ids_lead_to_a_profile(name: str) -> None:
    assert load_profile(name).name == "qwen2-vl-7b"


def test_an_unknown_name_is_told_with_what_is_close() -> None:
    with pytest.raises(ModelNotFound, match=r"no profile is called qwen2-vl-8b; did you mean .*qwen2-vl-7b") as caught:
        load_profile("qwen2-vl-8b")
    assert "docmill plan --list" in caught.value.remedy


def test_a_name_like_no_other_is_told_without_guesses() -> None:
    with pytest.raises(ModelNotFound) as caught:
        load_profile("zzz")
    assert "did you mean" not in caught.value.message


@pytest.mark.parametrize("name", ["", "  "])
def test_no_name_is_not_the_current_folder(name: str) -> None:
    with pytest.raises(ModelNotFound, match="no model is named"):
        load_profile(name)


# --- the files -----------------------------------------------------------------------------------------------------


def test_a_key_that_a_profile_does_not_have_is_named(tmp_path: Path) -> None:
    text = (FOLDER / "qwen2-vl-7b.yaml").read_text(encoding="utf-8")
    (tmp_path / "a.yaml").write_text(text.replace("depth: 32", "deep: 32"), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"vision\.d(epth|eep)") as caught:
        read_profiles(tmp_path / "a.yaml")
    assert "a.yaml" in caught.value.message


@pytest.mark.parametrize("text", ["- a list", "text: [", "\x00"])
def test_what_is_no_profile_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"a\.yaml"):
        read_profiles(tmp_path / "a.yaml")


@pytest.mark.parametrize("wrong", [{"experts": 8}, {"dense_layers": 99}])
def test_impossible_decoders_are_refused(wrong: dict[str, int]) -> None:
    text = load_profile("qwen2-vl-7b").text
    with pytest.raises(ValueError, match=r"experts_per_token|dense_layers"):
        type(text).model_validate(text.model_dump() | wrong)
