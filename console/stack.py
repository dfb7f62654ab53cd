"""``docmill up``, ``down`` and ``status``."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from console.options import Json
from console.output import console, print_json, print_rows
from docmill.settings import Settings, load_settings

if TYPE_CHECKING:
    from flows.stack import ComponentStatus

STATUS_COLUMNS = ["component", "state", "url", "pid", "up_for"]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (up, down, status):
        app.command()(command)


def up(as_json: Json = False) -> None:
    """Start the local stack: Postgres, object store, Prefect's server and a worker; what runs is left alone."""
    from flows.bringing_up import bring_up, stack_of

    settings = load_settings()
    bring_up(settings, say=(lambda _: None) if as_json else (lambda told: console.print(f"  {told}", highlight=False)))
    parts = stack_of(settings).status()
    if as_json:
        print_json(parts)
        return
    ui = next((part.url for part in parts if part.component == "prefect" and part.url), settings.prefect.api_url)
    console.print(f"[bold green]up[/]: Prefect's UI at {(ui or '').removesuffix('/api')}", highlight=False)


def down(as_json: Json = False) -> None:
    """End the local stack and this folder's model servers; nothing is left running, and nothing is lost."""
    from flows.bringing_up import end_all, stack_of

    settings = load_settings()
    end_all(settings, say=(lambda _: None) if as_json else (lambda told: console.print(f"  {told}", highlight=False)))
    if as_json:
        print_json(stack_of(settings).status())
    else:
        console.print("[bold]down[/]: nothing of the local stack runs")


def status(as_json: Json = False) -> None:
    """The parts of the local stack, and the model servers: running or not, where, for how long."""
    from flows.bringing_up import stack_of

    settings = load_settings()
    parts = stack_of(settings).status() + _model_servers(settings)
    if as_json:
        print_json(parts)
        return
    rows = [
        {"component": p.component, "state": p.state, "url": p.url, "pid": p.pid, "up_for": _lasted(p.uptime_seconds)}
        for p in parts
    ]
    print_rows(rows, STATUS_COLUMNS, as_json=False)


def _model_servers(settings: Settings) -> list[ComponentStatus]:
    """Those of the ledger, where it runs, and those that others run."""
    from console.server_tables import short, state_of
    from flows.attached_servers import attached_servers
    from flows.server_ends import model_servers_of
    from flows.stack import ComponentStatus

    async def ask() -> list[ComponentStatus]:
        own, attached = await asyncio.gather(model_servers_of(settings), attached_servers(settings))
        now = datetime.now(UTC)
        return [
            ComponentStatus(
                f"model {short(each.profile)}", state_of(each), each.base_url or None, each.pid,
                (now - each.ready_at).total_seconds() if each.ready_at else None,
            )
            for each in own
        ] + [ComponentStatus("model server", each.state, each.base_url) for each in attached]  # fmt: skip

    return asyncio.run(ask())


def _lasted(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
