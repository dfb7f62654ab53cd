"""``docmill serve``, ``servers`` and ``stop``."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from console.options import Json
from console.output import console, print_json, printable
from console.preflight import Gpus, Port, gpu_indexes
from docmill.failures import ConfigurationError, DatabaseUnavailable, DocmillError
from docmill.model_failures import ServerUnknown
from docmill.settings import Settings, load_settings


class Kind(StrEnum):
    """Environments that can be installed."""

    CUDA = "cuda"
    CPU = "cpu"


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (serve, servers, stop):
        app.command()(command)


def serve(
    profile: Annotated[
        str | None, typer.Argument(help="A profile, a name of serving.models, or a folder; else serving.profile.")
    ] = None,
    tensor_parallel_size: Annotated[
        str | None, typer.Option("--tensor-parallel-size", help="GPUs of one server, or auto.")
    ] = None,
    replicas: Annotated[int, typer.Option("--replicas", min=1, max=64, help="Servers beside each other.")] = 1,
    gpus: Gpus = None,
    port: Port = None,
    max_model_len: Annotated[int | None, typer.Option("--max-model-len", min=512, help="Context in tokens.")] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return once it is ready; it goes on without us.")] = False,
    install: Annotated[
        Kind | None, typer.Option("--install", help="First make an environment with vLLM; without a model only that.")
    ] = None,
    version: Annotated[str | None, typer.Option("--version", help="Of vLLM, with --install.")] = None,
    into: Annotated[Path | None, typer.Option("--into", help="Folder of the environment, with --install.")] = None,
) -> None:
    """Start a model server and watch over it until Ctrl-C, which drains it; Postgres is started where down."""
    settings = load_settings()
    if install is None and (version or into):
        raise ConfigurationError("--version and --into go with --install", remedy="add --install cuda (or cpu)")
    if install is not None:
        settings = _installed(settings, install, version, into)
        if profile is None:
            return
    size = _size(tensor_parallel_size)
    if settings.serving.base_urls:
        raise ConfigurationError(
            "serving.base_urls names servers that others run, and those are asked alone",
            remedy="unset serving.base_urls to let docmill run servers",
        )
    # what runs servers brings the database's client and vLLM's checks with it
    from console.server_runs import serve_detached, serve_here
    from flows.bringing_up import bring_up_database
    from flows.launches import StartOptions, profile_key

    key = profile_key(profile or settings.serving.profile, settings)
    options = StartOptions(tensor_parallel_size=size, gpus=gpu_indexes(gpus), port=port, max_model_len=max_model_len)
    bring_up_database(settings)
    asyncio.run((serve_detached if detach else serve_here)(settings, key, replicas, options))


def _installed(settings: Settings, kind: Kind, version: str | None, into: Path | None) -> Settings:
    """The settings, with the interpreter of the environment that was made."""
    from serving.vllm.environment import default_folder, install_vllm

    folder = into or default_folder(settings.data_dir, kind.value, version)
    python = install_vllm(kind.value, folder, version, lambda told: console.print(escape(printable(told)), style="dim"))
    console.print(f"[bold green]installed[/]: {escape(str(python))}", highlight=False, soft_wrap=True)
    if into is not None:
        console.print(f'in docmill.toml: \\[serving] python = "{escape(str(python))}"', style="dim", soft_wrap=True)
    return settings.model_copy(update={"serving": settings.serving.model_copy(update={"python": python})})


def _size(text: str | None) -> int | None:
    if text is None or (text.isdigit() and 1 <= int(text) <= 64):
        return None if text is None else int(text)
    if text == "auto":
        return 0
    raise ConfigurationError(
        "--tensor-parallel-size is neither a number from 1 to 64 nor auto", remedy="see the possible: docmill plan"
    )


def servers(
    name: Annotated[
        str | None, typer.Argument(help="A profile, or an id or its beginning: that one in detail.")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Ended ones, too.")] = False,
    as_json: Json = False,
) -> None:
    """The model servers: state, address, GPUs, load. Those of serving.base_urls are asked now."""
    settings = load_settings()
    from console.server_tables import log_lines, print_server, print_servers
    from flows.attached_servers import attached_servers
    from flows.server_looks import server_in_detail, servers_of

    if name is not None:
        try:
            found = asyncio.run(server_in_detail(settings, name))
        except (DatabaseUnavailable, ServerUnknown) as error:
            raise _run_by_others(settings, "docmill servers") or error from None
        log = log_lines(found.server)
        if as_json:
            print_json({"server": found.server, "holders": found.holders, "restarts": found.restarts, "log": log})
        else:
            print_server(found.server, [(each.name, each.until) for each in found.holders], found.restarts, log)
        return
    attached = asyncio.run(attached_servers(settings))
    try:
        records = asyncio.run(servers_of(settings, live=not all_))
    except DatabaseUnavailable:
        if not attached:
            raise
        records = []
    if as_json:
        print_json({"servers": records, "attached": attached})
    else:
        print_servers(records, attached)


def _run_by_others(settings: Settings, remedy: str) -> ConfigurationError | None:
    """Where others run the servers, that instead of an error about our own rows."""
    if not settings.serving.base_urls:
        return None
    return ConfigurationError(
        "serving.base_urls names servers that others run, and docmill has started none of that name", remedy=remedy
    )


def stop(
    name: Annotated[str | None, typer.Argument(help="A profile (all its servers), or an id or its beginning.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Even if somebody holds it.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Every model server.")] = False,
) -> None:
    """End model servers: running requests get their time, and nothing of them is left running."""
    if (name is None) == (not all_):
        told = "neither a server nor --all is given" if name is None else "a server and --all are given"
        raise ConfigurationError(told, remedy="name a server (see: docmill servers), or give --all alone")
    settings = load_settings()
    from console.server_runs import stop_all
    from flows.server_looks import servers_called, servers_of

    try:
        wanted = asyncio.run(servers_called(settings, name) if name is not None else servers_of(settings, live=True))
    except (DatabaseUnavailable, ServerUnknown) as error:
        raise _run_by_others(settings, "stop them where they were started") or error from None
    if not wanted:
        console.print("no model server is up", style="dim")
        return
    errors: list[DocmillError] = asyncio.run(stop_all(settings, wanted, force=force))
    if errors:
        raise errors[0]
