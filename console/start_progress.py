"""How starting model servers stand, as a progress bar each; a line a phase where there is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from console.output import console, printable

PHASES = ("preflight", "starting", "loading", "compiling", "capturing", "warming", "ready")
"""In the order of a start; what else a server may be doing (restarting) leaves the bar where it is."""
Show = Callable[[UUID, str, float | None], None]


@contextmanager
def start_progress(profile: str, server_ids: list[UUID]) -> Iterator[Show]:
    """Something to tell (row, phase, share of the phase or None)."""
    names = {each: profile if len(server_ids) == 1 else f"{profile} {str(each)[:8]}" for each in server_ids}
    if not console.is_terminal:
        yield _lines(names)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bars: dict[UUID, TaskID] = {
            each: progress.add_task(escape(printable(name)), total=1.0) for each, name in names.items()
        }

        def show(server_id: UUID, phase: str, share: float | None) -> None:
            told = f"{escape(printable(names[server_id]))} [dim]{escape(phase)}[/]"
            progress.update(bars[server_id], description=told, completed=position(phase, share))

        yield show


def position(phase: str, share: float | None) -> float | None:
    """Where in the whole start: 0 to 1, None where unknown."""
    if phase not in PHASES:
        return None
    return (PHASES.index(phase) + min(share or 0.0, 1.0)) / (len(PHASES) - 1) if phase != "ready" else 1.0


def _lines(names: dict[UUID, str]) -> Show:
    told: dict[UUID, str] = {}

    def show(server_id: UUID, phase: str, share: float | None) -> None:
        if told.get(server_id) != phase:
            told[server_id] = phase
            console.print(f"{escape(printable(names[server_id]))}: {escape(phase)}", style="dim", highlight=False)

    return show
