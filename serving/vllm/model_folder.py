"""A model's folder, looked at without reading its weights: what it lacks, and whether a download was cut off.

Only small files and the headers of the shards are read, so that 144 GB take as long as 4 (a few milliseconds a shard).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docmill.failures import PermanentError
from docmill.model_failures import ModelIncomplete, ModelNotFound, NotAVisionModel
from serving.vllm.checksums import checksum_findings
from serving.vllm.findings import Finding
from serving.vllm.shards import shard_findings

__all__ = ["Finding", "ModelFiles", "check_model_folder", "model_files"]

INDEX = "model.safetensors.index.json"
_TOKENIZERS = (
    ("tokenizer.json",),
    ("vocab.json", "merges.txt"),
    ("tokenizer.model",),
    ("tekken.json",),
    ("tiktoken.model",),
    ("qwen.tiktoken",),
)
_PROCESSORS = ("preprocessor_config.json", "processor_config.json", "image_processor_config.json")
_VISION_KEYS = ("vision_config", "visual", "vit_config", "vision_tower", "mm_vision_tower", "vision_tower_config")
_NESTED = ("thinker_config", "text_config", "llm_config", "language_config")
_OTHER_WEIGHTS = ("*.bin", "*.pt", "*.pth", "*.gguf")
_UNFINISHED = ("*.incomplete", "*.part", "*.aria2", "*.crdownload", "*.tmp")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The weights of a folder: how many files and bytes."""

    shards: int
    total_bytes: int


def model_files(path: Path) -> ModelFiles:
    """Count the weights; zeros where there are none or the folder cannot be read."""
    try:
        files = [each for each in path.glob("*.safetensors") if each.is_file()]
        return ModelFiles(len(files), sum(each.stat().st_size for each in files))
    except OSError:
        return ModelFiles(0, 0)


def check_model_folder(
    path: Path,
    *,
    weights: bool = True,
    chat_template: bool = True,
    verify: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[Finding]:
    """What is wrong with the folder; nothing where it is complete.

    Args:
        path: folder with config.json and the weights.
        weights: whether weights must be there (not with ``--load-format dummy``).
        chat_template: whether one must be there (not with ``--chat-template``).
        verify: also read every file that ``SHA256SUMS`` names and compare (minutes for a large model).
        say: is told which file is being read, with ``verify``.
    """
    try:
        if not path.is_dir():
            what = "is a file" if path.exists() else "is not there"
            return [_finding(ModelNotFound, "", f"{path} {what}", _where(path))]
        found = _configuration(path)
        if any(each.error is ModelNotFound for each in found):
            return found
        found += _tokenizer(path) + _processor(path)
        if chat_template:
            found += _template(path)
        if weights:
            found += _weights(path)
        if verify:
            found += checksum_findings(path, say)
    except OSError as error:
        name = Path(error.filename).name if error.filename else str(path)
        return [_finding(ModelIncomplete, name, f"{name} cannot be read: {error.strerror}", "check who may read it")]
    return found


def _finding(error: type[PermanentError], file: str, message: str, remedy: str) -> Finding:
    return Finding(file, message, remedy, error)


def _where(path: Path) -> str:
    return (
        f"the folder holds config.json and the weights; is {path.parent} there?"
        if not path.parent.exists()
        else "name a profile (docmill plan --list) or the folder that holds config.json and the weights"
    )


def _json(path: Path, name: str) -> tuple[Any, list[Finding]]:
    """A JSON object of the folder; None where the file is not there."""
    file = path / name
    if not file.exists():
        return None, []
    try:
        held = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        held = None
    if not isinstance(held, dict):
        size = file.stat().st_size
        what = "is empty" if size == 0 else f"is no JSON object ({size} bytes): cut off, or a pointer of Git LFS"
        return None, [_finding(ModelIncomplete, name, f"{name} {what}", "download it again")]
    return held, []


def _configuration(path: Path) -> list[Finding]:
    if not (path / "config.json").exists():
        if snapshots := sorted((path / "snapshots").glob("*/config.json")):
            remedy = f"name the snapshot: {snapshots[-1].parent}"
        elif (path / "adapter_config.json").exists():
            remedy = "these are the weights of an adapter (LoRA): name the model that it belongs to"
        else:
            remedy = "name the folder that holds config.json, or download it again"
        return [_finding(ModelNotFound, "config.json", f"{path} has no config.json", remedy)]
    held, wrong = _json(path, "config.json")
    if wrong:
        return wrong
    found = []
    if not held.get("model_type"):
        found.append(
            _finding(ModelIncomplete, "config.json", "config.json names no model_type", "take the model's own file")
        )
    if not _has_vision(held):
        kind = held.get("model_type") or "the model"
        found.append(
            _finding(
                NotAVisionModel, "config.json", f"{kind} has no vision part (config.json without vision_config)",
                "choose a vision-language model, such as Qwen2-VL",
            )
        )  # fmt: skip
    return found


def _has_vision(config: dict[str, Any]) -> bool:
    if any(config.get(key) for key in _VISION_KEYS):
        return True
    return any(isinstance(config.get(key), dict) and _has_vision(config[key]) for key in _NESTED)


def _tokenizer(path: Path) -> list[Finding]:
    for names in _TOKENIZERS:
        if all((path / name).exists() for name in names):
            empty = [name for name in names if (path / name).stat().st_size == 0]
            if not empty:
                return []
            return [_finding(ModelIncomplete, empty[0], f"{empty[0]} is empty", "download it again")]
    return [
        _finding(
            ModelIncomplete, "tokenizer.json", "no tokenizer (tokenizer.json, or vocab.json with merges.txt)",
            "download the tokenizer's files into the folder",
        )
    ]  # fmt: skip


def _processor(path: Path) -> list[Finding]:
    present = [name for name in _PROCESSORS if (path / name).exists()]
    if not present:
        return [
            _finding(
                ModelIncomplete, _PROCESSORS[0], "no preprocessor_config.json (how pictures are prepared)",
                "download it into the folder",
            )
        ]  # fmt: skip
    return [finding for name in present for finding in _json(path, name)[1]]


def _template(path: Path) -> list[Finding]:
    if (path / "chat_template.jinja").exists() or any((path / "chat_templates").glob("*.jinja")):
        return []
    found: list[Finding] = []
    for name in ("chat_template.json", "tokenizer_config.json", "processor_config.json"):
        held, wrong = _json(path, name)
        found += wrong
        if held is not None and held.get("chat_template"):
            return []
    return [
        *found,
        _finding(
            ModelIncomplete, "chat_template.jinja",
            "no chat template (chat_template.jinja or .json, or chat_template in tokenizer_config.json)",
            "download it, or add --chat-template FILE to serving.extra_arguments",
        ),
    ]  # fmt: skip


def _weights(path: Path) -> list[Finding]:
    index, wrong = _json(path, INDEX)
    if wrong:
        return wrong
    if index is not None:
        held = index.get("weight_map")
        if not isinstance(held, dict) or not all(isinstance(shard, str) for shard in held.values()) or not held:
            return [_finding(ModelIncomplete, INDEX, f"{INDEX} has no weight_map", "download it again")]
        tensors: dict[str, set[str]] = {}
        for tensor, shard in held.items():
            tensors.setdefault(shard, set()).add(tensor)
        return shard_findings(path, tensors, _unfinished(path))
    shards = sorted(each.name for each in path.glob("*.safetensors"))
    if shards:
        return shard_findings(path, {shard: set() for shard in shards}, _unfinished(path), siblings=True)
    for pattern in _OTHER_WEIGHTS:
        if other := sorted(each.name for each in path.glob(pattern) if not each.name.startswith("training_args")):
            return [
                Finding(
                    other[0], f"weights as {pattern}, which cannot be checked before a start",
                    "safetensors files are checked and load faster", None,
                )
            ]  # fmt: skip
    hint = _unfinished(path)
    return [
        _finding(
            ModelIncomplete, "*.safetensors", "no weights" + (f"; the download stopped at {hint[0]}" if hint else ""),
            "download them; a model without weights starts only with --load-format dummy, and writes noise",
        )
    ]  # fmt: skip


def _unfinished(path: Path) -> list[str]:
    """What an interrupted download leaves."""
    places = (path, path / ".cache" / "huggingface" / "download")
    return sorted(each.name for place in places for pattern in _UNFINISHED for each in place.glob(pattern))
