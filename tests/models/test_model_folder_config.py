"""A model's own config.json: it overrules the catalog, and an unknown model works from it alone."""

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from docmill.failures import DocmillError
from docmill.model_failures import ModelIncomplete, ModelNotFound, NotAVisionModel, UnsupportedModel
from docmill.models.gpus import parse_gpus
from docmill.models.hub_config import profile_of_folder
from docmill.models.naming import load_profile
from docmill.models.planning import plan
from docmill.models.variants import profile_to_serve
from docmill.models.weights import parameter_counts

MakeFolder = Callable[..., Path]
QWEN2_VL_7B: dict[str, Any] = {
    "architectures": ["Qwen2VLForConditionalGeneration"],
    "model_type": "qwen2_vl",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 32768,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "tie_word_embeddings": False,
    "vocab_size": 152064,
    "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
    "vision_config": {
        "depth": 32,
        "embed_dim": 1280,
        "hidden_size": 3584,
        "mlp_ratio": 4,
        "num_heads": 16,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    },
}
QWEN3_MOE: dict[str, Any] = {
    "architectures": ["Qwen3VLMoeForConditionalGeneration"],
    "model_type": "qwen3_vl_moe",
    "text_config": {
        "head_dim": 128, "hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 262144,
        "moe_intermediate_size": 768, "num_attention_heads": 32, "num_experts": 128, "num_experts_per_tok": 8,
        "num_hidden_layers": 48, "num_key_value_heads": 4, "mlp_only_layers": [], "vocab_size": 151936,
    },
    "tie_word_embeddings": False,
    "vision_config": {
        "deepstack_visual_indexes": [8, 16, 24], "depth": 27, "hidden_size": 1152, "intermediate_size": 4304,
        "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 2048, "patch_size": 16,
        "spatial_merge_size": 2, "temporal_patch_size": 2,
    },
}  # fmt: skip
M3: dict[str, Any] = {
    "architectures": ["MiniMaxM3SparseForConditionalGeneration"],
    "model_type": "minimax_m3_vl",
    "text_config": {
        "hidden_size": 6144, "intermediate_size": 3072, "dense_intermediate_size": 12288,
        "shared_intermediate_size": 3072, "num_hidden_layers": 60, "num_attention_heads": 64, "num_key_value_heads": 4,
        "head_dim": 128, "vocab_size": 200064, "max_position_embeddings": 524288, "num_local_experts": 128,
        "num_experts_per_tok": 4, "moe_layer_freq": [0] * 3 + [1] * 57, "tie_word_embeddings": False,
        "sparse_attention_config": {"sparse_num_index_heads": 4, "sparse_index_dim": 128},
    },
    "vision_config": {
        "hidden_size": 1280, "intermediate_size": 5120, "num_hidden_layers": 32, "num_attention_heads": 16,
        "patch_size": 14, "img_token_compression_config": {"spatial_merge_size": 2, "temporal_patch_size": 2},
    },
}  # fmt: skip


def nested(config: dict[str, Any]) -> dict[str, Any]:
    """The same in the layout of transformers 5."""
    top = {key: config[key] for key in ("architectures", "model_type", "vision_config", "tie_word_embeddings")}
    text = {key: value for key, value in config.items() if key not in top}
    text["rope_parameters"] = text.pop("rope_scaling") | {"rope_type": "default"}
    return top | {"text_config": text}


@pytest.mark.parametrize("layout", ["old", "new"])
def test_both_layouts_describe_the_same_model(layout: str, make_folder: MakeFolder) -> None:
    config = QWEN2_VL_7B if layout == "old" else nested(QWEN2_VL_7B)
    found, known = profile_of_folder(make_folder(config)), load_profile("qwen2-vl-7b")
    assert found.name == "qwen2-vl-7b"
    assert (found.text, found.vision, found.context) == (known.text, known.vision, known.context)
    assert found.folder is not None


@pytest.mark.parametrize(("config", "name"), [(QWEN3_MOE, "qwen3-vl-30b-a3b"), (M3, "minimax-m3")])
def test_experts_are_read(config: dict[str, Any], name: str, make_folder: MakeFolder) -> None:
    found, known = profile_of_folder(make_folder(config)), load_profile(name)
    assert parameter_counts(found) == parameter_counts(known)
    assert (found.name, found.arguments, found.request_extra) == (name, known.arguments, known.request_extra)


def test_newer_keys_of_minimax_m3(make_folder: MakeFolder) -> None:
    text = {k: v for k, v in M3["text_config"].items() if k not in ("moe_layer_freq", "sparse_attention_config")}
    text |= {"mlp_layer_types": ["dense"] * 3 + ["sparse"] * 57, "index_n_heads": 4, "index_head_dim": 128}
    found = profile_of_folder(make_folder(M3 | {"text_config": text}))
    assert parameter_counts(found) == parameter_counts(load_profile("minimax-m3"))


def test_config_json_overrules_the_catalog(make_folder: MakeFolder) -> None:
    folder = make_folder(
        QWEN2_VL_7B | {"max_position_embeddings": 8192, "vocab_size": 100_000, "tie_word_embeddings": True},
        preprocessor_config={"min_pixels": 200_704, "max_pixels": 1_003_520},
    )
    found = load_profile("qwen2-vl-7b", {"qwen2-vl-7b": folder})
    assert (found.context, found.max_model_len) == (8192, 8192)
    assert (found.text.vocabulary, found.text.tied) == (100_000, True)
    assert (found.vision.min_pixels, found.vision.max_pixels) == (200_704, 1_003_520)
    assert (found.hub_id, found.boxes) == ("Qwen/Qwen2-VL-7B-Instruct", "relative_1000")


@pytest.mark.parametrize(
    "files",
    [
        {"preprocessor_config": {"size": {"shortest_edge": 7840, "longest_edge": 784_000}}},
        {"processor_config": {"image_processor": {"size": {"shortest_edge": 7840, "longest_edge": 784_000}}}},
    ],
)
def test_pixel_limits_of_newer_processors(files: dict[str, Any], make_folder: MakeFolder) -> None:
    vision = profile_of_folder(make_folder(QWEN2_VL_7B, **files)).vision
    assert (vision.min_pixels, vision.max_pixels) == (7840, 784_000)


def test_yarn_makes_the_context_longer(make_folder: MakeFolder) -> None:
    scaling = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
    found = profile_of_folder(make_folder(QWEN2_VL_7B | {"rope_scaling": scaling}))
    assert found.context == 131_072


def test_an_unknown_model_of_a_known_architecture_works_from_its_config_alone(make_folder: MakeFolder) -> None:
    folder = make_folder(QWEN2_VL_7B | {"num_hidden_layers": 14}, name="forms-small")
    found = load_profile(str(folder))
    assert (found.name, found.hub_id, found.text.layers) == ("forms-small", "", 14)
    assert found.boxes == "relative_1000"
    assert found.max_model_len == 32768
    assert plan(found, *reversed(parse_gpus("H100"))).fits


def test_a_model_gets_the_name_that_the_settings_give_it(make_folder: MakeFolder) -> None:
    assert load_profile("invoices", {"invoices": make_folder(QWEN2_VL_7B)}).name == "invoices"


# --- quantised -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "bits", "group", "block"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, 4, 128, 0),
        ({"quant_method": "gptq", "bits": 8, "group_size": 128}, 8, 128, 0),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, 4, 0, 0),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, 8, 16384, 128),
        ({"quant_method": "fp8"}, 8, 0, 0),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, 4, 0, 0),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, 4, 16, 0),
        ({"quant_method": "mxfp8"}, 8, 32, 0),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32, "type": "int"}}},
            },
            4, 32, 0,
        ),
    ],
)  # fmt: skip
def test_ways_to_store_matrices(
    told: dict[str, Any], bits: int, group: int, block: int, make_folder: MakeFolder
) -> None:
    found = profile_of_folder(make_folder(QWEN2_VL_7B | {"quantization_config": told})).quantization
    assert found is not None
    assert (found.method, found.bits, found.group, found.block) == (told["quant_method"], bits, group, block)
    assert bits / 8 <= found.bytes_per_weight <= bits / 8 + 0.1


def test_a_quantised_folder_is_the_catalogs_variant(make_folder: MakeFolder) -> None:
    told = {"quant_method": "awq", "bits": 4, "group_size": 128}
    folder = make_folder(QWEN2_VL_7B | {"quantization_config": told})
    assert load_profile(str(folder)).name == "qwen2-vl-7b-awq"
    assert load_profile("qwen2-vl-7b", {"qwen2-vl-7b": folder}).hub_id == "Qwen/Qwen2-VL-7B-Instruct-AWQ"


# --- what is wrong with a folder -----------------------------------------------------------------------------------


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="there is no model folder"):
        load_profile(str(tmp_path / "gone"))
    with pytest.raises(ModelNotFound, match=r"serving\.models names .* for qwen2-vl-7b"):
        load_profile("qwen2-vl-7b", {"qwen2-vl-7b": tmp_path / "gone"})


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (None, "has no config.json"),
        ('{"architectures": [', "cannot be read"),
        ("[]", "holds no JSON object"),
        ({k: v for k, v in QWEN2_VL_7B.items() if k != "hidden_size"}, "lacks hidden_size"),
        (QWEN2_VL_7B | {"num_hidden_layers": 0}, "layers"),
        (QWEN2_VL_7B | {"quantization_config": {"bits": 4}}, "no quant_method"),
    ],
)
def test_a_config_that_is_missing_or_broken(config: Any, told: str, make_folder: MakeFolder) -> None:
    with pytest.raises(ModelIncomplete, match=told) as caught:
        profile_of_folder(make_folder(config))
    assert "download" in caught.value.remedy


JUNK: list[Any] = [None, 0, -1, 2.5, True, "x", "", [], [1], {}, {"a": 1}]
WHOLE: list[dict[str, Any]] = [
    QWEN2_VL_7B | {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}},
    QWEN3_MOE,
    M3,
]


def keys_of(held: dict[str, Any], *before: str) -> Iterator[tuple[str, ...]]:
    for key, value in held.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from keys_of(value, *before, key)


def with_junk(config: dict[str, Any], keys: tuple[str, ...], junk: Any) -> dict[str, Any]:
    head, *rest = keys
    return config | {head: with_junk(config[head], tuple(rest), junk) if rest else junk}


@pytest.mark.parametrize("config", WHOLE, ids=["dense", "experts", "minimax"])
def test_a_value_of_the_wrong_kind_is_never_a_bug(config: dict[str, Any], make_folder: MakeFolder) -> None:
    folder, refused = make_folder(config), 0
    for keys, junk in product(keys_of(config), JUNK):
        (folder / "config.json").write_text(json.dumps(with_junk(config, keys, junk)), encoding="utf-8")
        try:
            plan(profile_of_folder(folder), *reversed(parse_gpus("H100")))
        except DocmillError as error:  # any other exception fails the test
            assert error.remedy
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"vision_config": None}, NotAVisionModel),
        ({"vision_config": "x"}, ModelIncomplete),
        ({"architectures": 5}, UnsupportedModel),
        ({"architectures": [["a"]]}, UnsupportedModel),
        ({"rope_scaling": "yarn"}, ModelIncomplete),
        ({"num_attention_heads": 0, "head_dim": None}, ModelIncomplete),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [128]}}, ModelIncomplete),
    ],
)
def test_which_error_a_wrong_value_is(wrong: dict[str, Any], error: type[Exception], make_folder: MakeFolder) -> None:
    with pytest.raises(error):
        profile_of_folder(make_folder(QWEN2_VL_7B | wrong))


def test_a_model_without_eyes(make_folder: MakeFolder) -> None:
    config = {k: v for k, v in QWEN2_VL_7B.items() if k != "vision_config"} | {"architectures": ["Qwen2ForCausalLM"]}
    with pytest.raises(NotAVisionModel, match="Qwen2ForCausalLM, which has no vision part") as caught:
        profile_of_folder(make_folder(config))
    assert caught.value.remedy


def test_an_architecture_that_docmill_does_not_know(make_folder: MakeFolder) -> None:
    with pytest.raises(UnsupportedModel, match="LlavaForConditionalGeneration") as caught:
        profile_of_folder(make_folder(QWEN2_VL_7B | {"architectures": ["LlavaForConditionalGeneration"]}))
    assert "Qwen2VLForConditionalGeneration" in caught.value.remedy


def test_the_checkpoint_that_is_served(make_folder: MakeFolder) -> None:
    folder = make_folder(QWEN2_VL_7B)
    assert profile_to_serve("qwen2-vl-7b", {}, "awq") == load_profile("qwen2-vl-7b-awq")
    assert profile_to_serve("qwen2-vl-7b", {"qwen2-vl-7b-awq": folder}, "awq").folder == str(folder)
    assert profile_to_serve("qwen2-vl-7b", {"qwen2-vl-7b": folder}, "fp8").folder == str(folder)
    assert profile_to_serve("qwen2-vl-7b", {}, None) == load_profile("qwen2-vl-7b")


def test_a_folder_with_blanks_is_served_under_a_name_without(make_folder: MakeFolder, tmp_path: Path) -> None:
    folder = make_folder(QWEN2_VL_7B | {"num_hidden_layers": 5}).rename(tmp_path / "my  own model")
    assert profile_of_folder(folder).name == "my-own-model"


def test_a_config_that_is_nested_too_deeply_is_damaged(make_folder: MakeFolder) -> None:
    folder = make_folder(QWEN2_VL_7B)
    (folder / "config.json").write_text("[" * 100_000)
    with pytest.raises(ModelIncomplete):
        profile_of_folder(folder)
