"""A package called vllm, small and of no use, laid out as the real one: what is asked of an installed vLLM is there.

``write_vllm(folder)`` writes it with its metadata and an interpreter script ``python`` that sees it.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PARSER_MODULES = {24: "entrypoints/openai/cli_args.py", 32: "entrypoints/launchers/cli_args.py",
                  33: "entrypoints/common/cli_args.py"}  # fmt: skip
ARCHITECTURES = ("Qwen2VLForConditionalGeneration", "Qwen3VLForConditionalGeneration")

CLI_ARGS = """
import argparse, dataclasses, json

@dataclasses.dataclass
class StructuredOutputsConfig:
    backend: str = "auto"
    disable_any_whitespace: bool = False

def optional_type(inner):
    def _optional_type(value):
        return None if value == "None" else inner(value)
    return _optional_type

def human_readable_int(value):
    return int(value)

def human_readable_int_or_auto(value):
    return int(value)

def parse_dataclass(value, cls=StructuredOutputsConfig):
    return cls(**json.loads(value))

def make_arg_parser(parser):
    from vllm.platforms import current_platform
    if not current_platform.device_type:
        raise RuntimeError("Failed to infer device type")
    add = parser.add_argument
    add("model_tag", nargs="?")
    add("--model", type=str, default="tiny")
    add("--host", type=optional_type(str), default=None)
    add("--port", type=int, default=8000)
    add("--served-model-name", nargs="+", type=optional_type(str), default=None)
    add("--tensor-parallel-size", "-tp", type=int, default=1)
    add("--max-model-len", type=human_readable_int_or_auto, default=None)
    add("--max-num-batched-tokens", type=human_readable_int, default=None)
    add("--max-num-seqs", type=optional_type(int), default=None)
    add("--gpu-memory-utilization", type=float, default=0.92)
    add("--dtype", type=str, choices=["auto", "bfloat16", "float16"], default="auto")
    add("--moe-backend", type=lambda s: s.lower().replace("-", "_"), choices=["auto", "deep_gemm"], default="auto")
    add("--mm-encoder-tp-mode", type=str, choices=["data", "weights"], default="weights")
    add("--structured-outputs-config", type=parse_dataclass, default=StructuredOutputsConfig())
    add("--limit-mm-per-prompt", type=json.loads, default={})
    add("--load-format", type=str, default="auto")
    add("--chat-template", type=optional_type(str), default=None)
    add("--optimization-level", type=int, choices=[0, 1, 2, 3], default=2)
    add("--weights-prefetch", type=str, nargs="?", const=True, default=None)
    add("--api-key", nargs="+", type=optional_type(str), default=None)
    add("--trust-remote-code", action=argparse.BooleanOptionalAction, default=False)
    add("--enforce-eager", action=argparse.BooleanOptionalAction, default=False)
    add("--enable-sleep-mode", action=argparse.BooleanOptionalAction, default=False)
    add("--enable-expert-parallel", action=argparse.BooleanOptionalAction, default=False)
    add("--disable-cascade-attn", action=argparse.BooleanOptionalAction, default=False)
    hidden = add("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=None)
    if NEW_INVERSES:
        parser._option_string_actions["--disable-prefix-caching"] = hidden
    for name in MORE:
        add(name, type=str)
    return parser
"""


def write_vllm(
    folder: Path,
    *,
    version: str = "0.32.0",
    distribution: str = "vllm",
    cuda: str | None = None,
    platform: str = "cpu",
    gpus: tuple[Mapping[str, Any], ...] = (),
    architectures: tuple[str, ...] = ARCHITECTURES,
    options: tuple[str, ...] = (),
    broken: str | None = None,
    noise: str = "",
) -> Path:
    """Write it; the path of an interpreter (a script) that sees it.

    Args:
        folder: made where missing.
        cuda: what torch was built with.
        platform: device type of vLLM's platform; empty: none was found.
        gpus: ``{"name": …, "total_memory": …, "uuid": …}`` each, as torch sees them.
        options: further flags.
        broken: Python that runs when vllm is imported.
        noise: printed to stdout on import, as vLLM's logging does.
    """
    minor = int(version.split(".")[1])
    layout = 24 if minor < 28 else 32 if minor < 33 else 33
    package = folder / "vllm"
    files = {
        "__init__.py": f"__version__ = {version!r}\n" + (broken or "") + (f"\nprint({noise!r})\n" if noise else ""),
        "utils/argparse_utils.py": "import argparse\nclass FlexibleArgumentParser(argparse.ArgumentParser):\n"
        "    def __init__(self):\n        super().__init__(allow_abbrev=False)\n        self._deprecated = set()\n",
        PARSER_MODULES[layout]: f"NEW_INVERSES = {layout == 33}\nMORE = {options!r}\n" + CLI_ARGS,
        "entrypoints/openai/api_server.py": "",
        "platforms/__init__.py": f"class Platform:\n    device_type = {platform!r}\n"
        f"    def is_sleep_mode_available(self):\n        return {cuda is not None}\ncurrent_platform = Platform()\n",
        "model_executor/models/registry.py": "class ModelRegistry:\n    @staticmethod\n"
        f"    def get_supported_archs():\n        return {set(architectures)!r}\n",
    }
    for name, text in files.items():
        place = package / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
        for above in place.parents:
            if above == folder:
                break
            (above / "__init__.py").touch()
    (folder / "torch").mkdir(exist_ok=True)
    (folder / "torch" / "__init__.py").write_text(
        textwrap.dedent(f"""
            import json
            from types import SimpleNamespace
            GPUS = json.loads({json.dumps([dict(gpu) for gpu in gpus])!r})
            __version__ = "2.13.0{"+cpu" if cuda is None else ""}"
            version = SimpleNamespace(cuda={cuda!r})

            class Library:
                def __init__(self, name, kind):
                    assert (name, kind) == ("torchvision", "FRAGMENT")

                def define(self, schema):
                    library.declared.add(schema.partition("(")[0])

            library = SimpleNamespace(Library=Library, declared=set())
            cuda = SimpleNamespace(
                is_available=lambda: bool(GPUS),
                device_count=lambda: len(GPUS),
                get_device_properties=lambda index: SimpleNamespace(**GPUS[index]),
            )
        """),
        encoding="utf-8",
    )
    metadata = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    return write_interpreter(folder / "python", f'PYTHONPATH="{folder}" exec "{sys.executable}" "$@"')


def write_interpreter(place: Path, script: str) -> Path:
    """A shell script that stands in for an interpreter."""
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    place.chmod(0o755)
    return place
