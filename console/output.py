"""Tables for people, JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

console = Console()
LONG = {
    "company",
    "description",
    "found",
    "issuer",
    "key",
    "labels",
    "name",
    "notes",
    "remedy",
    "source",
    "value",
    "what",
}
"""Columns that may be broken where a terminal is narrow; the others stay whole."""
Row = Mapping[str, Any]


def plain(value: Any) -> Any:
    """A value as JSON can hold it. Decimals become strings, so that no digit is lost."""
    match value:
        case Enum():
            return value.value
        case datetime() | date():
            return value.isoformat()
        case Decimal() | UUID() | Path():
            return str(value)
        case Mapping():
            return {str(key): plain(held) for key, held in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(held) for held in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        case _:
            return value


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def printable(text: str) -> str:
    """The text with control and direction characters written out, so that a file's name cannot steer a terminal."""
    return "".join(c if c == "\n" or unicodedata.category(c) not in ("Cc", "Cf") else f"\\u{ord(c):04x}" for c in text)


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            # never rounded up: a confidence of 0.997 is not certainty
            return f"{math.floor(value * 100) / 100:.2f}"
        case datetime():
            return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        case list() | tuple():
            return ", ".join(_cell(held) for held in value)
        case _:
            return str(plain(value))


def print_rows(
    rows: Sequence[Row], columns: Sequence[str], *, as_json: bool, title: str | None = None, empty: str = "none"
) -> None:
    """Rows as a table, or as a JSON list with all their keys.

    Args:
        rows: mappings.
        columns: which keys the table shows, in this order.
        as_json: JSON instead of a table.
        title: above the table.
        empty: what to say where there are no rows.
    """
    if as_json:
        print_json(list(rows))
        return
    if not rows:
        console.print(escape(empty), style="dim")
        return
    table = Table(title=title, title_justify="left", title_style="bold", header_style="dim", box=None, pad_edge=False)
    for column in columns:
        numeric = all(isinstance(row.get(column), int | float | Decimal | None) for row in rows)
        table.add_column(
            column.replace("_", " "),
            justify="right" if numeric else "left",
            overflow="fold",
            no_wrap=column not in LONG,
        )
    for row in rows:
        table.add_row(*(escape(printable(_cell(row.get(column)))) for column in columns))
    console.print(table)


def print_failures(rows: Sequence[Row], *, title: str | None = None) -> None:
    """Failures as short paragraphs: where and what, then why and what to do. Tables of them get too narrow to read."""
    if rows and title:
        console.print(f"[bold]{escape(title)}[/]")
    for row in rows:
        place = escape(printable(str(row["key"]))) + (f" [dim]page[/] {row['page_no']}" if row.get("page_no") else "")
        batch = f"  [dim]batch {str(row['batch_id'])[:8]}[/]" if row.get("batch_id") else ""
        console.print(f"[red]✗[/] {place}  [bold]{escape(row['code'])}[/]{batch}", highlight=False)
        told = [escape(row["message"])]
        if row.get("remedy"):
            told.append(f"[dim]what to do:[/] {escape(row['remedy'])}")
        for each in told:
            console.print(Padding(each, (0, 0, 0, 4)), highlight=False)
