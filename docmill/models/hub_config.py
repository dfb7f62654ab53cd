"""A model's own ``config.json``: it overrules the catalog, and an unknown model works from it alone.

Both layouts are read: with the decoder's keys at the top (transformers 4) and under ``text_config`` (transformers 5).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from docmill.failures import ConfigurationError
from docmill.model_failures import ModelIncomplete, ModelNotFound, NotAVisionModel, UnsupportedModel
from docmill.models.catalog_files import catalog
from docmill.models.profile import BoxConvention, Family, ModelProfile, Quantization

ARCHITECTURES: dict[str, Family] = {
    "Qwen2VLForConditionalGeneration": Family.QWEN2_VL,
    "Qwen2_5_VLForConditionalGeneration": Family.QWEN2_5_VL,
    "Qwen3VLForConditionalGeneration": Family.QWEN3_VL,
    "Qwen3VLMoeForConditionalGeneration": Family.QWEN3_VL,
    "MiniMaxM3SparseForConditionalGeneration": Family.MINIMAX_M3,
}
_BOXES: dict[Family, BoxConvention] = {
    Family.QWEN2_VL: "relative_1000",
    Family.QWEN2_5_VL: "resized_pixels",
    Family.QWEN3_VL: "relative_1000",
    Family.MINIMAX_M3: "none",
}
_GROUPED = {"awq": 2.5, "gptq": 2.5, "awq_marlin": 2.5, "gptq_marlin": 2.5}
MODEL_LEN = 32768
"""Context that an unknown model is served with, where its own is longer."""


def profile_of_folder(folder: Path, *, base: ModelProfile | None = None, name: str | None = None) -> ModelProfile:
    """The profile of the model in a folder.

    Args:
        folder: with config.json.
        base: what the catalog says of it; its names, flags and notes stay.
        name: where there is no base; by default the catalog's model of the same shape, else the folder's name.

    Raises:
        ModelNotFound: the folder is not there.
        ModelIncomplete: config.json is missing or unreadable.
        NotAVisionModel: it has no vision part.
        UnsupportedModel: docmill does not know its architecture.
    """
    config = _read(folder, "config.json")
    architecture = next(iter(config.get("architectures") or []), "")
    family = ARCHITECTURES.get(architecture)
    if "vision_config" not in config:
        what = architecture or config.get("model_type") or "a model without an architecture"
        raise NotAVisionModel(f"{folder} holds {what}, which has no vision part (no vision_config in config.json)")
    if family is None:
        raise UnsupportedModel(
            f"{folder} holds {architecture or 'an unnamed architecture'}, which docmill cannot plan for",
            remedy=f"docmill knows {', '.join(ARCHITECTURES)}; start others yourself and set serving.base_urls",
        )
    try:
        shape = _shape(config, family, _pixels(folder))
        if base is None:
            base = _same_shape(architecture, shape)
        return _combined(folder, config, architecture, family, shape, base, name)
    except KeyError as error:
        raise ModelIncomplete(
            f"{folder / 'config.json'} lacks {error.args[0]}", remedy="download config.json again"
        ) from error
    except (ValidationError, TypeError, ValueError) as error:
        raise ModelIncomplete(
            f"{folder / 'config.json'} does not describe a model that can exist: {_told(error)}",
            remedy="download config.json again",
        ) from error


def _told(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return str(error)


def _combined(
    folder: Path,
    config: dict[str, Any],
    architecture: str,
    family: Family,
    shape: dict[str, Any],
    base: ModelProfile | None,
    name: str | None,
) -> ModelProfile:
    quantization = _quantization(config)
    if base is not None:
        held = base.model_dump() | shape | {"folder": str(folder), "architecture": architecture, "family": family}
        held["quantization"] = quantization
        held["context"] = max(base.context, shape["context"])
        held["max_model_len"] = min(base.max_model_len, held["context"])
        held["parameters"] = None
        return ModelProfile.model_validate(held)
    m3 = family is Family.MINIMAX_M3
    like = catalog()["minimax-m3"] if m3 else None
    return ModelProfile.model_validate(
        shape
        | {
            "name": name or folder.resolve().name,
            "family": family,
            "architecture": architecture,
            "boxes": _BOXES[family],
            "max_model_len": min(shape["context"], MODEL_LEN),
            "quantization": quantization,
            "folder": str(folder),
            "arguments": like.arguments if like else (),
            "request_extra": like.request_extra if like else {},
            "expert_parallel": m3,
            "encoder_data_parallel": m3,
        }
    )


def _same_shape(architecture: str, shape: dict[str, Any]) -> ModelProfile | None:
    for profile in catalog().values():
        text = profile.text
        same = profile.architecture == architecture and profile.base is None and (
            text.layers, text.hidden, text.heads, text.kv_heads, text.experts,
        ) == tuple(shape["text"][key] for key in ("layers", "hidden", "heads", "kv_heads", "experts"))  # fmt: skip
        if same:
            return profile
    return None


def _read(folder: Path, name: str) -> dict[str, Any]:
    if not folder.is_dir():
        raise ModelNotFound(f"there is no model folder {folder}")
    path = folder / name
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelIncomplete(f"{folder} has no {name}", remedy=f"download {name} again") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelIncomplete(
            f"{path} cannot be read: {type(error).__name__}", remedy=f"download {name} again"
        ) from error
    if not isinstance(held, dict):
        raise ModelIncomplete(f"{path} holds no JSON object", remedy=f"download {name} again")
    return held


def _pixels(folder: Path) -> dict[str, int]:
    """Pixel limits of the folder's own image processor."""
    path = folder / "preprocessor_config.json"
    if not path.is_file():
        return {}
    held = _read(folder, path.name)
    given = held.get("size")
    size: dict[str, Any] = given if isinstance(given, dict) else {}
    limits = {
        "min_pixels": held.get("min_pixels") or size.get("shortest_edge"),
        "max_pixels": held.get("max_pixels") or size.get("longest_edge"),
    }
    return {key: int(value) for key, value in limits.items() if value}


def _shape(config: dict[str, Any], family: Family, pixels: dict[str, int]) -> dict[str, Any]:
    text = config.get("text_config") or config
    vision = config["vision_config"]
    heads = text["num_attention_heads"]
    qwen3, m3 = family is Family.QWEN3_VL, family is Family.MINIMAX_M3
    experts = text.get("num_local_experts") or text.get("num_experts") or 0
    kinds = text.get("moe_layer_freq")
    sparse = text.get("sparse_attention_config") or {}
    shared = config.get("tie_word_embeddings", False)
    decoder = {
        "layers": text["num_hidden_layers"],
        "hidden": text["hidden_size"],
        "intermediate": text.get("moe_intermediate_size", text["intermediate_size"]) if experts
        else text["intermediate_size"],
        "heads": heads,
        "kv_heads": text.get("num_key_value_heads", heads),
        "head_dim": text.get("head_dim") or text["hidden_size"] // heads,
        "vocabulary": text["vocab_size"],
        "tied": bool(text.get("tie_word_embeddings", shared)),
        "qkv_bias": not (qwen3 or m3),
        "qk_norm": qwen3 or m3,
        "experts": experts,
        "experts_per_token": text.get("num_experts_per_tok", 0) if experts else 0,
        "router_bias": m3,
        "dense_layers": kinds.count(0) if isinstance(kinds, list) else len(text.get("mlp_only_layers") or []),
        "dense_intermediate": text.get("dense_intermediate_size", text["intermediate_size"]) if experts else 0,
        "shared_intermediate": text.get("shared_intermediate_size", 0) if m3 else 0,
        "index_heads": sparse.get("sparse_num_index_heads", 0),
        "index_dim": sparse.get("sparse_index_dim", 0),
    }  # fmt: skip
    # Qwen2-VL calls the vision part's width embed_dim, and the decoder's hidden_size
    width = vision.get("embed_dim") or vision["hidden_size"]
    limits = {"min_pixels": 65536, "max_pixels": 16777216} if qwen3 else {"min_pixels": 3136, "max_pixels": 12845056}
    if m3:
        limits["max_pixels"] = 451584
    merging = vision.get("img_token_compression_config") or {}
    seeing = {
        "depth": vision.get("depth") or vision["num_hidden_layers"],
        "hidden": width,
        "intermediate": vision.get("intermediate_size") or round(width * vision.get("mlp_ratio", 4)),
        "heads": vision.get("num_heads") or vision["num_attention_heads"],
        "patch": vision.get("patch_size", 16 if qwen3 else 14),
        "merge": vision.get("spatial_merge_size") or merging.get("spatial_merge_size", 2),
        "temporal": vision.get("temporal_patch_size") or merging.get("temporal_patch_size", 2),
        "deepstack": len(vision.get("deepstack_visual_indexes") or []),
        "positions": vision.get("num_position_embeddings", 0) if qwen3 else 0,
        **limits,
        **pixels,
    }
    return {"text": decoder, "vision": seeing, "context": text["max_position_embeddings"]}


def _quantization(config: dict[str, Any]) -> Quantization | None:
    held = config.get("quantization_config") or (config.get("text_config") or {}).get("quantization_config")
    if not held:
        return None
    method = str(held.get("quant_method", "")).lower()
    bits = held.get("bits") or held.get("w_bit") or (4 if "fp4" in method or "nvfp4" in str(held).lower() else 8)
    group = held.get("group_size") or held.get("q_group_size") or 0
    if not method:
        raise ConfigurationError("quantization_config names no quant_method", remedy="download config.json again")
    if method in _GROUPED and group > 0:
        return Quantization(method=method, bits=bits, group=group, group_bytes=_GROUPED[method] + (bits - 4) / 8)
    return Quantization(method=method, bits=bits, group=max(0, group), group_bytes=1.0 if group > 0 else 0.0)
