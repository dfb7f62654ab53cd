"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, max=256, help="Drain tasks of the run.")]
MaxFailureRate = Annotated[
    float | None,
    typer.Option(
        "--max-failure-rate", min=0.0, max=1.0, help="Share of failed outcomes above which the run ends Failed."
    ),
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="At most so many.")]
Here = Annotated[bool, typer.Option("--here", help="Run in this process instead of through a worker.")]
