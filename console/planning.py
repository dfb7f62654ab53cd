"""``docmill plan``: which GPUs a model needs and how it is best spread over them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from console.options import Json
from console.output import console, print_json, print_rows
from docmill.failures import ConfigurationError, PageTooLarge
from docmill.models.arguments import vllm_arguments
from docmill.models.gpus import GIB, Gpu, parse_gpus
from docmill.models.hub_quantization import method_family
from docmill.models.memory import block_tokens
from docmill.models.naming import load_profile, profile_names
from docmill.models.planning import A4_200_DPI, Plan, plan
from docmill.models.profile import ModelProfile
from docmill.models.variants import profile_to_serve
from docmill.models.weights import bytes_per_gpu, parameter_counts
from docmill.settings import Settings, load_settings


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("plan")(plan_model)


def plan_model(
    profile: Annotated[
        str | None, typer.Argument(help="A profile, a name of serving.models, or a folder; else serving.profile.")
    ] = None,
    gpus: Annotated[
        str | None, typer.Option("--gpus", help="Such as 2xH200, 4xA100-80GB or 1x24GB; by default this machine's.")
    ] = None,
    max_model_len: Annotated[int | None, typer.Option("--max-model-len", min=512, help="Context in tokens.")] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Pages that one server is to read at once.")
    ] = None,
    quantization: Annotated[
        str | None, typer.Option("--quantization", help="awq, gptq-int4, gptq-int8, fp8…: smaller weights.")
    ] = None,
    tensor_parallel_size: Annotated[
        int | None, typer.Option("--tensor-parallel-size", min=1, max=64, help="GPUs of one server; else the best.")
    ] = None,
    page: Annotated[str, typer.Option("--page", help="Size of a page in pixels, WIDTHxHEIGHT.")] = "x".join(
        map(str, A4_200_DPI)
    ),
    listing: Annotated[bool, typer.Option("--list", help="List the profiles.")] = False,
    as_json: Json = False,
) -> None:
    """Say which GPUs a model needs, how it is best split over them, how many pages it reads at once; starts nothing."""
    settings = load_settings()
    if listing:
        _print_list(as_json=as_json)
        return
    serving = settings.serving
    wanted = quantization or serving.quantization
    model = profile_to_serve(profile or serving.profile, serving.models, wanted)
    count, gpu = parse_gpus(gpus) if gpus is not None else _own_gpus()
    try:
        found = plan(
            model,
            gpu,
            count,
            max_model_len=max_model_len or settings.serving.max_model_len,
            concurrency=concurrency,
            tensor_parallel_size=tensor_parallel_size or settings.serving.tensor_parallel_size or None,
            utilization=settings.serving.gpu_memory_utilization,
            max_num_seqs=settings.serving.max_num_seqs,
            page=_page(page),
        )
    except PageTooLarge as error:
        raise ConfigurationError(error.message, remedy="plan for another --page") from error
    command = _command(found, settings) if found.fits else None
    if as_json:
        print_json(_facts(found, command))
    else:
        _print(found, command, settings.serving.gpu_memory_utilization)


def _page(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdigit() and height.isdigit() and int(width) and int(height)):
        raise ConfigurationError(f"{text!r} is no size of a page", remedy="write it as 1654x2339")
    return int(width), int(height)


def _own_gpus() -> tuple[int, Gpu]:
    # NVML is asked only where no --gpus is given
    from serving.vllm.gpu_devices import gpu_inventory
    from serving.vllm.intended import gpu_kind

    inventory = gpu_inventory()
    if not inventory.devices:
        raise ConfigurationError(
            f"this machine shows no GPU ({inventory.reason})", remedy="say which GPUs to plan for: --gpus 2xH200"
        )
    # a plan is for GPUs of one kind: the smallest stands for all of them
    return len(inventory.devices), gpu_kind(min(inventory.devices, key=lambda each: each.total_bytes))


def _command(found: Plan, settings: Settings) -> str:
    profile = found.profile
    arguments = vllm_arguments(
        profile,
        settings=settings.serving,
        model=profile.folder or profile.hub_id or profile.name,
        served_name=profile.name,
        tensor_parallel_size=found.tensor_parallel_size,
        host=settings.serving.host,
        port=settings.serving.port or 8000,
        max_model_len=found.max_model_len,
        gpu=found.gpu,
    )
    python = settings.serving.python or "python"
    lines = [f"{python} -m vllm.entrypoints.openai.api_server"]
    for each in arguments:
        if each.startswith("--"):
            lines.append(each)
        else:
            lines[-1] += f" {shlex.quote(each)}"
    return " \\\n  ".join(lines)


def _facts(found: Plan, command: str | None) -> dict[str, object]:
    memory, page = found.memory, found.page
    return {
        "profile": found.profile.name,
        "fits": found.fits,
        "gpu": found.gpu.name,
        "gpu_count": found.gpu_count,
        "tensor_parallel_size": found.tensor_parallel_size,
        "replicas": found.replicas,
        "possible_tensor_parallel_sizes": found.possible_sizes,
        "max_model_len": found.max_model_len,
        "weights_bytes_per_gpu": memory.weights,
        "activation_bytes_per_gpu": memory.activations,
        "other_bytes_per_gpu": memory.other,
        "kv_cache_bytes_per_gpu": memory.kv_cache,
        "kv_bytes_per_token_per_gpu": memory.kv_bytes_per_token,
        "kv_cache_tokens": memory.kv_tokens,
        "block_tokens": block_tokens(found.profile),
        "pages_at_once": found.pages_at_once,
        "page": {
            "width": page.width,
            "height": page.height,
            "resized_width": page.resized.width,
            "resized_height": page.resized.height,
            "visual_tokens": page.visual,
            "prompt_tokens": page.prompt,
            "answer_tokens": page.answer,
            "tokens": page.total,
            "fits": page.fits,
        },
        "reasons": found.reasons,
        "advice": found.advice,
        "warnings": found.warnings,
        "notes": found.profile.notes,
        "command": command,
    }


def _print(found: Plan, command: str | None, utilization: float) -> None:
    profile = found.profile
    verdict = "[green]fits[/]" if found.fits else "[red]does not fit[/]"
    count = parameter_counts(profile).total / 1e9
    held = f", {profile.quantization.method}" if profile.quantization is not None else ""
    console.print(
        f"[bold]{escape(profile.name)}[/] ({count:.1f} billion parameters{held}) on {found.gpu_count} x "
        f"{escape(found.gpu.name)}: {verdict}",
        highlight=False,
    )
    for what, told in _lines(found, utilization):
        _print_line(what, told)
    if command is not None:
        console.print()
        console.print(command, highlight=False, markup=False, soft_wrap=True)


def _lines(found: Plan, utilization: float) -> Iterator[tuple[str, str]]:
    memory, page = found.memory, found.page
    replicas = found.replicas
    sizes = ", ".join(map(str, found.possible_sizes))
    replica = f"{replicas} server{'' if replicas == 1 else 's'}"
    yield "split", f"{replica}, tensor parallel {found.tensor_parallel_size} (the model allows {sizes})"
    yield "why", "; ".join(found.reasons)
    work = memory.activations + memory.other
    left = f" + {memory.kv_cache / GIB:.1f} KV cache" if memory.kv_cache > 0 else ""
    yield (
        "a GPU",
        (
            f"{memory.total / GIB:.1f} GiB, {memory.usable / GIB:.1f} of them vLLM's ({utilization:g}): "
            f"{memory.weights / GIB:.1f} weights + {work / GIB:.1f} work{left}"
        ),
    )
    if found.fits:
        each = memory.kv_bytes_per_token / 1024
        yield "KV cache", f"{memory.kv_tokens:,} tokens a server, {each:g} KiB a token and GPU"
        whole = f", {found.pages_at_once * replicas:,} in all" if replicas > 1 else ""
        yield "at once", f"{found.pages_at_once:,} pages a server{whole}"
    yield "context", f"{found.max_model_len:,} tokens a request"
    seen = f"{page.width} x {page.height} px, seen at {page.resized.width} x {page.resized.height}"
    tokens = f"{page.visual:,} visual + about {page.prompt:,} prompt + {page.answer:,} answer"
    yield "a page", f"{seen}: {tokens} = {page.total:,} tokens"
    yield from (("would fit", each) for each in found.advice)
    yield from (("mind", each) for each in found.warnings)
    yield from (("note", each) for each in found.profile.notes)


def _print_line(what: str, told: str) -> None:
    style = {"would fit": "green", "mind": "yellow"}.get(what, "dim")
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=9, style=style)
    table.add_column(overflow="fold")
    table.add_row(what, escape(told))
    console.print(table, highlight=False)


def _print_list(*, as_json: bool) -> None:
    rows = [_listed(load_profile(name)) for name in profile_names()]
    print_rows(rows, ["profile", "billions", "context", "served_with", "weights", "gib"], as_json=as_json)


def _listed(profile: ModelProfile) -> dict[str, object]:
    quantization = profile.quantization
    return {
        "profile": profile.name,
        "billions": f"{parameter_counts(profile).total / 1e9:.1f}",
        "context": profile.context,
        "served_with": profile.max_model_len,
        "weights": "bfloat16" if quantization is None else method_family(quantization)[0],
        "gib": f"{bytes_per_gpu(profile, 1) / GIB:.1f}",
        "boxes": profile.boxes.replace("_", " "),
        "hub_id": profile.hub_id,
        "architecture": profile.architecture,
    }
