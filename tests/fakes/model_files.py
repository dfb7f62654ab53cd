"""A folder like a model's, with two tiny shards."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
CONFIG: Mapping[str, Any] = {
    "model_type": "qwen2_vl",
    "architectures": ["Qwen2VLForConditionalGeneration"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
    "vocab_size": 512,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "vision_config": {
        "depth": 2, "embed_dim": 32, "hidden_size": 64, "num_heads": 2, "patch_size": 14, "spatial_merge_size": 2,
        "temporal_patch_size": 2, "mlp_ratio": 4, "in_channels": 3,
    },
}  # fmt: skip


def safetensors(tensors: Mapping[str, int], data: bytes | None = None) -> bytes:
    """A file with tensors of so many bytes each (their data left out with ``data=b""``)."""
    held: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, size in tensors.items():
        held[name] = {"dtype": "U8", "shape": [size], "data_offsets": [end, end + size]}
        end += size
    header = json.dumps(held).encode()
    return len(header).to_bytes(8, "little") + header + (bytes(end) if data is None else data)


def write_model(folder: Path, config: Mapping[str, Any] = CONFIG) -> Path:
    """Write all that a complete model has."""
    folder.mkdir(parents=True)
    shards = {SHARDS[0]: {"a": 4096, "b": 1024}, SHARDS[1]: {"c": 512}}
    for name, tensors in shards.items():
        (folder / name).write_bytes(safetensors(tensors))
    weight_map = {tensor: name for name, tensors in shards.items() for tensor in tensors}
    small = {
        "config.json": config,
        "tokenizer.json": {"version": "1.0"},
        "preprocessor_config.json": {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 14},
        "model.safetensors.index.json": {"metadata": {"total_size": 5632}, "weight_map": weight_map},
    }
    for name, held in small.items():
        (folder / name).write_text(json.dumps(held), encoding="utf-8")
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}", encoding="utf-8")
    return folder
