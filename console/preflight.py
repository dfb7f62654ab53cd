"""``docmill preflight``: what a start of a model server would miss."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Annotated

import typer

from console.options import Json
from console.outcome import Exit
from console.output import console, print_rows
from docmill.checks import Check
from docmill.failures import ConfigurationError
from docmill.settings import load_settings

TensorParallelSize = Annotated[
    int | None, typer.Option("--tensor-parallel-size", min=1, max=64, help="GPUs of one server.")
]
Gpus = Annotated[str | None, typer.Option("--gpus", help="Indexes of the GPUs that may be used, such as 0,1.")]
Port = Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0: a free one.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(preflight)


def preflight(
    profile: Annotated[str | None, typer.Argument(help="A profile, a name of serving.models, or a folder.")] = None,
    tensor_parallel_size: TensorParallelSize = None,
    replicas: Annotated[int, typer.Option("--replicas", min=1, max=64, help="Servers beside each other.")] = 1,
    gpus: Gpus = None,
    port: Port = None,
    max_model_len: Annotated[int | None, typer.Option("--max-model-len", min=512, help="Context in tokens.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare the model's files with its SHA256SUMS.")] = False,
    as_json: Json = False,
) -> None:
    """Check everything that a start of a model server needs; changes nothing. Without a model: this host alone.

    With serving.base_urls nothing is started: those servers are asked instead.
    """
    settings = load_settings()
    if settings.serving.base_urls:
        from flows.checks import attached_checks

        _print(asyncio.run(attached_checks(settings)), as_json=as_json)
        return
    # the checks bring NVML and the planner with them, which other commands do not need
    from serving.vllm.preflight import preflight as checks_of

    asked = checks_of(
        settings,
        profile,
        tensor_parallel_size=tensor_parallel_size,
        replicas=replicas,
        gpus=gpu_indexes(gpus),
        port=port,
        max_model_len=max_model_len,
        verify=verify,
    )
    doing = (
        "reading the model's files" if verify else "checking (the first question to a vLLM environment takes a while)"
    )
    with console.status(doing) if not as_json else contextlib.nullcontext():
        checks = asyncio.run(asked)
    _print(checks, as_json=as_json)


def _print(checks: Sequence[Check], *, as_json: bool) -> None:
    """The table; ends the command where a check failed."""
    rows = [
        {
            "what": each.what,
            "state": each.state,
            "found": each.found,
            "remedy": each.remedy,
            "error": each.error.code if each.error is not None else None,
            "detail": each.detail,
        }
        for each in checks
    ]
    print_rows(rows, ["what", "state", "found", "remedy"], as_json=as_json)
    if any(each.state == "failed" for each in checks):
        raise typer.Exit(Exit.USAGE)


def gpu_indexes(text: str | None) -> tuple[int, ...]:
    """``0,1`` as numbers; () for None.

    Raises:
        ConfigurationError: it is no list of indexes.
    """
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts) or len(set(parts)) != len(parts):
        raise ConfigurationError("--gpus is no list of indexes", remedy="write --gpus 0,1")
    return tuple(int(part) for part in parts)
