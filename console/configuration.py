"""``docmill config show|check`` and ``docmill types``."""

from __future__ import annotations

import asyncio
import os
import re
import tomllib
from typing import Annotated, Any

import typer
from pydantic import BaseModel, SecretStr

from console.options import Json
from console.outcome import Exit
from console.output import console, print_json, print_rows
from docmill.document_types import FieldSpec, available, load_document_type
from docmill.settings import config_file, load_settings

config = typer.Typer(help="Settings: what is in force, and whether it works.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(config, name="config")
    app.command()(types)


@config.command()
def show(as_json: Json = False) -> None:
    """Every setting, its value and where that came from. Secrets are hidden."""
    settings = load_settings()
    path = config_file()
    written = tomllib.loads(path.read_text(encoding="utf-8")) if path else {}
    rows = [
        {"setting": name, "value": value, "from": _origin(name, written, path.name if path else ""), "what": what}
        for name, value, what in _flat(settings, "")
    ]
    if not as_json:
        console.print(
            f"file: {path or 'none (docmill.toml here or above, DOCMILL_CONFIG, or the user folder)'}", style="dim"
        )
    print_rows(rows, ["setting", "value", "from", "what"], as_json=as_json)


def _flat(group: BaseModel, prefix: str) -> list[tuple[str, Any, str]]:
    rows: list[tuple[str, Any, str]] = []
    for name, info in type(group).model_fields.items():
        value = getattr(group, name)
        if isinstance(value, BaseModel):
            rows += _flat(value, f"{prefix}{name}.")
        else:
            rows.append((prefix + name, _hidden(value), info.description or ""))
    return rows


def _without_key(argument: Any, before: Any) -> Any:
    """An argument of a command line; what stands behind ``--api-key`` is hidden, in both spellings."""
    flag, equals, _ = str(argument).replace("_", "-").partition("=")
    if flag == "--api-key" and equals:
        return f"{flag}=********"
    return "********" if str(before).replace("_", "-") == "--api-key" else argument


_PASSWORD = re.compile(r"://[^/@\s]*@")


def _hidden(value: Any) -> Any:
    match value:
        case SecretStr():
            return "********"
        case str():
            return _PASSWORD.sub("://********@", value)
        case tuple():
            return [_hidden(_without_key(held, before)) for before, held in zip(("", *value), value, strict=False)]
        case dict():
            return {name: _hidden(held) for name, held in value.items()}
        case _:
            return value


def _origin(name: str, written: dict[str, Any], path: str) -> str:
    variable = "DOCMILL_" + name.replace(".", "_").upper()
    if variable in os.environ:
        return variable
    place: Any = written
    for part in name.split("."):
        if not isinstance(place, dict) or part not in place:
            return "default"
        place = place[part]
    return path


@config.command()
def check(as_json: Json = False) -> None:
    """Try everything that the settings name: Postgres, object store, Prefect, folders, model servers."""
    settings = load_settings()
    # the checks bring the clients of all services with them, which `config show` does not need
    from flows.checks import check_all

    checks = asyncio.run(check_all(settings))
    rows = [{"what": c.what, "state": c.state, "found": c.found, "remedy": c.remedy} for c in checks]
    print_rows(rows, ["what", "state", "found", "remedy"], as_json=as_json)
    if any(c.state == "failed" for c in checks):
        raise typer.Exit(Exit.UNAVAILABLE)


def types(
    name: Annotated[str | None, typer.Argument(help="A document type, or a .yaml file.")] = None,
    as_json: Json = False,
) -> None:
    """The document types, or the fields of one."""
    folder = load_settings().pipeline.document_types
    if name is None:
        found = [load_document_type(each, folder) for each in available(folder)]
        rows = [{"name": t.name, "fields": len(t.fields), "description": t.description} for t in found]
        print_rows(rows, ["name", "fields", "description"], as_json=as_json)
        return
    kind = load_document_type(name, folder)
    if as_json:
        print_json(kind.model_dump(mode="json"))
        return
    console.print(f"[bold]{kind.name}[/] {kind.description}")
    rows = [_field_row(field, "") for field in kind.fields]
    rows += [_field_row(column, f"{field.name}.") for field in kind.fields for column in field.columns]
    print_rows(
        rows, ["field", "kind", "required", "labels", "description"], as_json=False,
        empty="no fields of its own: the key-value pairs, check boxes and tables that are found",
    )  # fmt: skip


def _field_row(field: FieldSpec, prefix: str) -> dict[str, Any]:
    return {
        "field": prefix + field.name,
        "kind": field.kind,
        "required": "yes" if field.required else "",
        "labels": field.aliases,
        "description": field.description,
    }
