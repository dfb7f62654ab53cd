"""Model servers for people: a table that fits a terminal, and one server in detail."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape

from console.output import console, print_rows, printable
from docmill.model_servers import Restart, ServerRecord, ServerState

if TYPE_CHECKING:
    from flows.attached_servers import AttachedServer

COLUMNS = ["profile", "state", "url", "gpus", "up", "restarts", "queue", "tok/s", "kv", "leases"]
ON_NARROW = ["profile", "state", "url", "up", "queue", "tok/s", "kv", "leases"]
WIDE = 100
LOG_LINES = 20
SILENT_SECONDS = 15.0
"""A supervisor says every 2 s that it lives; after so long without a word the row may not be what is."""


def print_servers(records: Sequence[ServerRecord], attached: Sequence[AttachedServer]) -> None:
    """The table."""
    rows = [server_cells(each) for each in records] + [attached_cells(each) for each in attached]
    columns = COLUMNS if console.width >= WIDE else ON_NARROW
    if console.width < WIDE:
        rows = [row | {"url": row["url"].removeprefix("http://")} for row in rows]
    print_rows(rows, columns, as_json=False, empty="no model server is up; start one with: docmill serve")
    for each in attached:
        if each.error is not None:
            told = f"{each.base_url}: {each.error}"
            console.print(f"[red]✗[/] {escape(printable(told))}", highlight=False, soft_wrap=True)


def server_cells(record: ServerRecord) -> dict[str, Any]:
    """One of docmill's own."""
    metrics = record.metrics if record.state in (ServerState.READY, ServerState.DRAINING) else {}
    return {
        "profile": short(record.profile),
        "state": state_of(record),
        "url": record.base_url,
        "gpus": ",".join(map(str, record.gpus)),
        "up": uptime(record),
        "restarts": record.restarts,
        **_load(metrics),
        "leases": record.leases,
    }


def attached_cells(server: AttachedServer) -> dict[str, Any]:
    """One that others run."""
    return {"profile": ", ".join(server.models), "state": server.state, "url": server.base_url, **_load(server.metrics)}


def _load(metrics: dict[str, Any]) -> dict[str, Any]:
    if not metrics:
        return {}
    speed, usage = metrics.get("generation_tokens_per_second"), metrics.get("kv_cache_usage")
    return {
        "queue": f"{metrics.get('requests_running', 0)}+{metrics.get('requests_waiting', 0)}",
        "tok/s": f"{speed:.0f}" if speed is not None else "",
        "kv": f"{usage:.0%}" if usage is not None else "",
    }


def short(profile: str) -> str:
    """A folder by its last part."""
    return Path(profile).name if profile.startswith("/") else profile


def state_of(record: ServerRecord) -> str:
    """The state; what a starting server is doing, and how far it is; how long its supervisor has been silent."""
    silent = (datetime.now(UTC) - record.heartbeat_at).total_seconds()
    if record.state.live and silent > SILENT_SECONDS:
        return f"{record.state}, silent {lasted(silent)}"
    if record.state is not ServerState.STARTING or not record.phase:
        return str(record.state)
    return f"{record.phase} {record.progress:.0%}" if record.progress is not None else record.phase


def uptime(record: ServerRecord) -> str:
    """Since it became ready; until its end."""
    if record.ready_at is None or record.state is ServerState.STARTING:
        return ""
    return lasted(((record.ended_at or datetime.now(UTC)) - record.ready_at).total_seconds())


def lasted(seconds: float) -> str:
    """A duration in few letters."""
    minutes, rest = divmod(max(0, int(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (
        f"{days}d{hours:02}h"
        if days
        else f"{hours}h{minutes:02}m"
        if hours
        else f"{minutes}m{rest:02}s"
        if minutes
        else f"{rest}s"
    )


def load_line(record: ServerRecord) -> str:
    """What a server does, in a line."""
    cells = server_cells(record)
    if record.state is not ServerState.READY:
        return ""
    metrics = record.metrics
    parts = [
        f"{metrics.get('requests_running', 0)} running, {metrics.get('requests_waiting', 0)} waiting",
        f"{cells['tok/s']} tokens/s" if cells.get("tok/s") else "",
        f"KV cache {cells['kv']}" if cells.get("kv") else "",
        f"{record.leases} {'lease' if record.leases == 1 else 'leases'}",
        f"{record.restarts} restarts" if record.restarts else "",
    ]
    return ", ".join(filter(None, parts))


def print_server(
    record: ServerRecord, holders: Sequence[tuple[str, datetime]], restarts: Sequence[Restart], log: Sequence[str]
) -> None:
    """One server in detail."""
    title = f"[bold]{escape(printable(record.profile))}[/] {state_of(record)}"
    console.print(f"{title} [dim]{escape(record.base_url)}[/]", highlight=False)
    facts = [
        ("id", record.id), ("host", record.host), ("model", record.model), ("served as", record.served_name),
        ("vLLM", record.vllm_version), ("pid", record.pid), ("GPUs", ", ".join(map(str, record.gpus))),
        ("tensor parallel", record.tensor_parallel_size), ("context", record.max_model_len),
        ("KV cache tokens", record.kv_cache_tokens), ("up", uptime(record)), ("load", load_line(record)),
        ("error", record.error_code), ("message", (record.message or "").partition("\n")[0]), ("log", record.log_path),
    ]  # fmt: skip
    for name, value in facts:
        if value not in (None, ""):
            console.print(f"  [dim]{name:<16}[/] {escape(printable(str(value)))}", highlight=False)
    if holders:
        console.print("[bold]held by[/]")
        for holder, until in holders:
            console.print(f"  {escape(printable(holder))} [dim]until {until.astimezone():%H:%M:%S}[/]", highlight=False)
    if restarts:
        console.print("[bold]restarts[/]")
        rows = [
            {"when": each.happened_at, "code": each.code, "requests": each.requests, "pages": len(each.page_ids),
             "what": each.message}
            for each in restarts
        ]  # fmt: skip
        print_rows(rows, ["when", "code", "requests", "pages", "what"], as_json=False)
    if log:
        console.print("[bold]last log lines[/]")
        print_log(log)


def print_log(lines: Sequence[str]) -> None:
    """Lines of a log, dim."""
    for line in lines:
        console.print(f"  {escape(printable(line))}", style="dim", highlight=False, soft_wrap=True)


def log_lines(record: ServerRecord) -> list[str]:
    """The last lines of its log, as far as it lies on this host."""
    try:
        with Path(record.log_path or "").open(encoding="utf-8", errors="replace") as log:
            return [line.rstrip() for line in deque(log, maxlen=LOG_LINES)]
    except OSError:
        return []
