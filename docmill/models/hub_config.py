"""A model's own ``config.json``: it overrules the catalog, and an unknown model works from it alone.

Both layouts are read: with the decoder's keys at the top (transformers 4) and under ``text_config`` (transformers 5).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from docmill.model_failures import ModelIncomplete, ModelNotFound, NotAVisionModel, UnsupportedModel
from docmill.models.catalog_files import catalog
from docmill.models.hub_quantization import method_family, quantization_of
from docmill.models.profile import BoxConvention, Family, ModelProfile, Quantization
from docmill.places import whole_path

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
MODEL_LEN = 32768
"""Context that an unknown model is served with, where its own is longer."""


def profile_of_folder(folder: Path, *, base: ModelProfile | None = None, name: str | None = None) -> ModelProfile:
    """The profile of the model in a folder.

    Args:
        folder: with config.json.
        base: what the catalog says of it; its flags and notes stay. None: the catalog's model of the same shape.
        name: what the profile is called; by default as the base, else as the folder.

    Raises:
        ModelNotFound: the folder is not there.
        ModelIncomplete: config.json is missing or unreadable.
        NotAVisionModel: it has no vision part.
        UnsupportedModel: docmill does not know its architecture.
    """
    config = _read(folder, "config.json")
    named = config.get("architectures")
    first = named[0] if isinstance(named, list) and named else ""
    architecture = first if isinstance(first, str) else ""
    family = ARCHITECTURES.get(architecture)
    if config.get("vision_config") is None:
        what = architecture or config.get("model_type") or "a model without an architecture"
        raise NotAVisionModel(f"{folder} holds {what}, which has no vision part (no vision_config in config.json)")
    if family is None:
        raise UnsupportedModel(
            f"{folder} holds {architecture or 'an unnamed architecture'}, which docmill cannot plan for",
            remedy=f"docmill knows {', '.join(ARCHITECTURES)}; start others yourself and set serving.base_urls",
        )
    try:
        shape = _shape(config, family, _pixels(folder))
        stored = quantization_of(config)
        if base is None or method_family(base.quantization) != method_family(stored):
            base = _same_model(architecture, shape, stored)
        return _combined(folder, architecture, family, shape, stored, base, name)
    except KeyError as error:
        raise ModelIncomplete(
            f"{folder / 'config.json'} lacks {error.args[0]}", remedy="download config.json again"
        ) from error
    except (ValidationError, TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        raise ModelIncomplete(
            f"{folder / 'config.json'} does not describe a model that can exist: {_told(error)}",
            remedy="download config.json again",
        ) from error


def _told(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_input=False, include_url=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    if isinstance(error, ValueError):
        return str(error)
    return "a value is of the wrong kind"  # what Python says of it names no key


def _combined(
    folder: Path,
    architecture: str,
    family: Family,
    shape: dict[str, Any],
    stored: Quantization | None,
    base: ModelProfile | None,
    name: str | None,
) -> ModelProfile:
    own = shape | {
        "architecture": architecture,
        "family": family,
        "quantization": stored,
        "folder": str(folder),
        "parameters": None,
    }
    if base is not None:
        longest = min(base.max_model_len, shape["context"])
        return ModelProfile.model_validate(
            base.model_dump() | own | {"name": name or base.name, "max_model_len": longest}
        )
    like = catalog()["minimax-m3"] if family is Family.MINIMAX_M3 else None
    taken = ("arguments", "request_extra", "expert_parallel", "encoder_data_parallel")
    return ModelProfile.model_validate(
        own
        | {"name": name or _name_of(folder), "boxes": _BOXES[family]}
        | {"max_model_len": min(shape["context"], MODEL_LEN)}
        | ({each: getattr(like, each) for each in taken} if like is not None else {})
    )


def _name_of(folder: Path) -> str:
    """The folder's own name as requests can carry it, without blanks."""
    return re.sub(r"[\s\x00-\x1f\x7f]+", "-", whole_path(folder).name) or "model"


def _same_model(architecture: str, shape: dict[str, Any], stored: Quantization | None) -> ModelProfile | None:
    """The catalog's model of that shape, if possible the variant that is stored in the same way."""
    keys = ("layers", "hidden", "heads", "kv_heads", "experts")
    alike = [
        profile
        for profile in catalog().values()
        if profile.architecture == architecture and all(getattr(profile.text, k) == shape["text"][k] for k in keys)
    ]
    same = [each for each in alike if method_family(each.quantization) == method_family(stored)]
    return next(iter(same or alike), None)


def _read(folder: Path, name: str) -> dict[str, Any]:
    if not folder.is_dir():
        raise ModelNotFound(f"there is no model folder {folder}")
    path = folder / name
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelIncomplete(f"{folder} has no {name}", remedy=f"download {name} again") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelIncomplete(
            f"{path} cannot be read: {type(error).__name__}", remedy=f"download {name} again"
        ) from error
    if not isinstance(held, dict):
        raise ModelIncomplete(f"{path} holds no JSON object", remedy=f"download {name} again")
    return held


def _pixels(folder: Path) -> dict[str, int]:
    """Pixel limits of the folder's own image processor: in a file of its own, or within the processor's (newer)."""
    held: dict[str, Any] = {}
    for name in ("processor_config.json", "preprocessor_config.json"):
        if (folder / name).is_file():
            whole = _read(folder, name)
            inner = whole.get("image_processor", {} if name == "processor_config.json" else whole)
            held |= inner if isinstance(inner, dict) else {}
    given = held.get("size")
    size: dict[str, Any] = given if isinstance(given, dict) else {}
    limits = {
        "min_pixels": held.get("min_pixels") or size.get("shortest_edge"),
        "max_pixels": held.get("max_pixels") or size.get("longest_edge"),
    }
    return {key: int(value) for key, value in limits.items() if value}


def _context(text: dict[str, Any]) -> int:
    """The longest context: what it was trained for, times what YaRN stretches it by."""
    longest = int(text["max_position_embeddings"])
    scaling = text.get("rope_parameters") or text.get("rope_scaling") or {}
    if str(scaling.get("rope_type") or scaling.get("type")) == "yarn":
        return int(scaling.get("original_max_position_embeddings", longest) * float(scaling.get("factor", 1)))
    return longest


def _shape(config: dict[str, Any], family: Family, pixels: dict[str, int]) -> dict[str, Any]:
    text = config.get("text_config") or config
    vision = config["vision_config"]
    heads = text["num_attention_heads"]
    qwen3, m3 = family is Family.QWEN3_VL, family is Family.MINIMAX_M3
    experts = text.get("num_local_experts") or text.get("num_experts") or 0
    kinds = text.get("moe_layer_freq") or [int(kind == "sparse") for kind in text.get("mlp_layer_types") or []]
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
        "dense_layers": kinds.count(0) if isinstance(kinds, list) and kinds else len(text.get("mlp_only_layers") or []),
        "dense_intermediate": text.get("dense_intermediate_size", text["intermediate_size"]) if experts else 0,
        "shared_intermediate": text.get("shared_intermediate_size", 0) if m3 else 0,
        "index_heads": sparse.get("sparse_num_index_heads", text.get("index_n_heads", 0)) if m3 else 0,
        "index_dim": sparse.get("sparse_index_dim", text.get("index_head_dim", 0)) if m3 else 0,
    }  # fmt: skip
    # Qwen2-VL calls the vision part's width embed_dim, and the decoder's hidden_size
    width = vision.get("embed_dim") or vision["hidden_size"]
    limits = {"min_pixels": 65536, "max_pixels": 16777216} if qwen3 else {"min_pixels": 3136, "max_pixels": 12845056}
    if m3:
        seen = catalog()["minimax-m3"].vision
        limits |= {"max_pixels": seen.max_pixels, "long_side": seen.long_side, "short_side": seen.short_side}
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
    return {"text": decoder, "vision": seeing, "context": _context(text)}
