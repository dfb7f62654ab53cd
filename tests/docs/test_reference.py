"""The reference pages against the code: nothing undocumented, nothing documented that is not there."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest
import typer
from pydantic import BaseModel

from console.main import app
from console.outcome import Exit
from docmill import model_failures
from docmill.document_types import DocumentType, FieldSpec, Validators
from docmill.failures import DocmillError, UnexpectedError
from docmill.settings import Settings, cores

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def sections(text: str, level: int) -> dict[str, str]:
    """Heading → what stands below it, up to the next heading of that level or a higher one."""
    parts = re.split(rf"^(#{{1,{level}}}) (.+)$", text, flags=re.M)
    return {
        title.strip(): body
        for marks, title, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
        if len(marks) == level
    }


def table(text: str) -> list[list[str]]:
    """The cells of all table rows, without heads and rules."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = {i for i, row in enumerate(rows) if all(re.fullmatch(r":?-+:?", cell) for cell in row)}
    return [row for i, row in enumerate(rows) if i not in rules and i + 1 not in rules]


# --- command line -------------------------------------------------------------------------------------------------


def commands() -> dict[str, Any]:
    def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
        held = getattr(command, "commands", None)
        if held is None:
            yield name, command
        else:
            for each, part in held.items():
                yield from walk(part, f"{name} {each}")

    return dict(walk(typer.main.get_command(app), "docmill"))


def documented_commands() -> dict[str, tuple[list[str], str]]:
    found = {}
    for title, body in sections((REFERENCE / "command-line.md").read_text(encoding="utf-8"), 3).items():
        words = title.strip("`").split()
        name = [word for word in words if re.fullmatch("[a-z]+", word)]
        found[" ".join(name)] = (words[len(name) :], body)
    return found


def options(parameters: list[Any]) -> set[str]:
    return {
        name
        for each in parameters
        if each.param_type_name == "option" and each.name != "help"
        for name in (*each.opts, *each.secondary_opts)
    }


def documented_options(text: str) -> set[str]:
    return {name for row in table(text) for name in re.findall(r"`(-[^`]*)`", row[0])}


def test_every_command_is_documented_and_no_other() -> None:
    assert set(documented_commands()) == set(commands())


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_is_documented_and_no_other(name: str) -> None:
    arguments, body = documented_commands()[name]
    parameters = commands()[name].params
    assert documented_options(body) == options(parameters)
    takes = [p for p in parameters if p.param_type_name == "argument"]
    assert len(arguments) == len(takes)
    assert [a.startswith("[") for a in arguments] == [not p.required for p in takes]


def test_options_of_every_command_are_documented() -> None:
    text = sections((REFERENCE / "command-line.md").read_text(encoding="utf-8"), 2)["Options of every command"]
    assert documented_options(text) == options(typer.main.get_command(app).params)


def test_defaults_of_options_are_documented_right() -> None:
    for name, (_, body) in documented_commands().items():
        stated = {
            row[0]: re.search(r"Default `?([^`\s]+?)`?\.(?:\s|$)", row[1])
            for row in table(body)
            if "Default " in row[1]
        }
        for option, default in stated.items():
            spelled = re.findall(r"`(-[^`]*)`", option)[0]
            parameter = next(p for p in commands()[name].params if spelled in p.opts)
            assert default is not None, (name, option)
            assert str(parameter.default) == default[1], (name, option)


def test_exit_codes_are_documented() -> None:
    text = sections((REFERENCE / "command-line.md").read_text(encoding="utf-8"), 2)["Exit codes"]
    assert [int(row[0]) for row in table(text)] == sorted(Exit)


# --- settings -----------------------------------------------------------------------------------------------------

COMPUTED = {
    "data_dir": "the user's data folder",
    "pipeline.workers": "cores + 1, at most 8",
    "pipeline.processes": "cores",
}


def settings_of(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from settings_of(info.annotation, f"{name}.")
        else:
            yield prefix + name, info


def default_text(name: str, info: Any) -> str:
    if name in COMPUTED:
        return COMPUTED[name]
    value = info.get_default(call_default_factory=True)
    if value is None:
        return "none"
    if isinstance(value, bool | tuple | dict):
        return f"`{json.dumps(list(value) if isinstance(value, tuple) else value)}`"
    return f"`{int(value)}`" if isinstance(value, float) and value == int(value) else f"`{value}`"


def documented_settings() -> dict[str, list[str]]:
    text = sections((REFERENCE / "settings.md").read_text(encoding="utf-8"), 2)["All settings"]
    return {row[0].strip("`"): row for row in table(text)}


def test_every_setting_is_documented_and_no_other() -> None:
    assert set(documented_settings()) == {name for name, _ in settings_of(Settings)}


@pytest.mark.parametrize(("name", "info"), list(settings_of(Settings)), ids=[n for n, _ in settings_of(Settings)])
def test_a_setting_is_documented_with_its_variable_and_default(name: str, info: Any) -> None:
    _, variable, default, allowed, _ = documented_settings()[name]
    assert variable == f"`DOCMILL_{name.replace('.', '_').upper()}`"
    assert default == default_text(name, info)
    limits = [
        str(int(v)) for m in info.metadata for v in (getattr(m, "ge", None), getattr(m, "le", None)) if v is not None
    ]
    choices = [each for each in get_args(info.annotation) if isinstance(each, str)]
    assert all(each in re.findall(r"[\w.-]+", allowed) for each in [*limits, *choices])


def test_computed_defaults_are_as_documented() -> None:
    pipeline = dict(settings_of(Settings))
    assert pipeline["pipeline.workers"].get_default(call_default_factory=True) == min(8, cores() + 1)
    assert pipeline["pipeline.processes"].get_default(call_default_factory=True) == cores()


# --- errors -------------------------------------------------------------------------------------------------------


def errors(kind: type[DocmillError] = DocmillError) -> Iterator[type[DocmillError]]:
    for each in kind.__subclasses__():
        if each.__module__ in (DocmillError.__module__, model_failures.__name__):
            yield from list(errors(each)) or [each]


def test_every_error_is_documented_with_category_and_disposition() -> None:
    documented = {
        (row[0].strip("`"), row[1], re.findall(r"`(\w+)`", title)[0])
        for title, body in sections((REFERENCE / "errors.md").read_text(encoding="utf-8"), 2).items()
        for row in table(body)
    }
    assert documented == {(e.code, str(e.category), str(e.disposition)) for e in errors()}
    assert (UnexpectedError.code, "internal", "give_up") in documented


def test_settings_that_errors_tell_to_change_exist() -> None:
    known = {name for name, _ in settings_of(Settings)}
    groups = "|".join(Settings.model_fields)
    for path in (ROOT / "docs").rglob("*.md"):
        named = set(re.findall(rf"`((?:{groups})\.[a-z_]+)`", path.read_text(encoding="utf-8")))
        assert named - {"prefect.yaml"} <= known, path
    for error in errors():
        assert set(re.findall(rf"\b((?:{groups})\.[a-z_]+)", error.default_remedy)) <= known, error


# --- document types -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "model"), [("The document", DocumentType), ("A field", FieldSpec), ("Validators", Validators)]
)
def test_every_key_of_a_document_type_is_documented(title: str, model: type[BaseModel]) -> None:
    body = sections((REFERENCE / "document-types.md").read_text(encoding="utf-8"), 2)[title]
    keys = body[body.index("| key |") :].split("\n\n")[0]
    documented = {name for row in table(keys) for name in re.findall(r"`(\w+)`", row[0])}
    assert documented == set(model.model_fields)


def test_kinds_and_roles_of_fields_are_documented() -> None:
    body = sections((REFERENCE / "document-types.md").read_text(encoding="utf-8"), 2)["A field"]
    kinds, roles = body.split("| kind | read as", 1)[1].split("| role |", 1)
    assert {row[0].strip("`") for row in table(kinds)[0:] if row[0].startswith("`")} == set(
        FieldSpec.model_fields["kind"].annotation  # type: ignore[arg-type]
    )
    documented = {name for row in table(roles) for name in re.findall(r"`(\w+)`", row[0])}
    (choices,) = [get_args(a) for a in get_args(FieldSpec.model_fields["role"].annotation) if get_args(a)]
    assert documented == set(choices)


# --- views and SQL ------------------------------------------------------------------------------------------------


def test_every_view_and_column_is_documented_as_postgres_explains_it(database: str) -> None:
    with psycopg.connect(database) as connection:
        rows = connection.execute("""
            SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), col_description(c.oid, a.attnum)
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
            WHERE c.relkind = 'v' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0
            ORDER BY c.relname, a.attnum
        """).fetchall()
    there: dict[str, list[tuple[str, str, str]]] = {}
    for view, column, kind, comment in rows:
        there.setdefault(view, []).append((column, kind.replace("timestamp with time zone", "timestamptz"), comment))
    documented = {
        title.strip("`"): [
            (row[0].strip("`"), row[1], row[2]) for row in table(body[body.index("| column | type |") :])
        ]
        for title, body in sections((REFERENCE / "views.md").read_text(encoding="utf-8"), 2).items()
    }
    assert documented == there
