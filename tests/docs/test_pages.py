"""The pages themselves: their links lead somewhere, their examples are accepted, their queries run."""

import re
import tomllib
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from pydantic import BaseModel

from docmill.document_types import parse_document_type
from docmill.settings import Settings

ROOT = Path(__file__).parents[2]
MARKDOWN = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "samples" / "README.md"], key=lambda p: p.as_posix()
)
LINK = re.compile(r"\]\(([^()\s]+)\)")


def fenced(text: str, language: str) -> list[str]:
    """The code blocks of a language; those in lists are indented."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", text, flags=re.M | re.S)
    return [re.sub(rf"^{indent}", "", block, flags=re.M) for indent, block in found]


# --- examples --------------------------------------------------------------------------------------------------------


def test_the_document_type_that_is_shown_is_right() -> None:
    (shown,) = fenced((ROOT / "docs" / "how-to" / "new-document-type.md").read_text(encoding="utf-8"), "yaml")
    assert parse_document_type(yaml.safe_load(shown), where="the page").name == "payable"


CONFIGURATIONS = [
    (path.relative_to(ROOT).as_posix(), block)
    for path in MARKDOWN
    for block in fenced(path.read_text(encoding="utf-8"), "toml")
]


@pytest.mark.parametrize(("page", "block"), CONFIGURATIONS, ids=[f"{p}-{i}" for i, (p, _) in enumerate(CONFIGURATIONS)])
def test_configuration_examples_are_accepted(page: str, block: str, tmp_path: Path) -> None:
    def moved(value: Any, name: str) -> Any:
        """Files of secrets that an example names are not on this machine."""
        if isinstance(value, dict):
            return {key: moved(held, key) for key, held in value.items()}
        if name.endswith("_file"):
            held = tmp_path / name
            held.write_text("secret", encoding="utf-8")
            return held
        return value

    given = moved(tomllib.loads(block), "")
    assert given, page
    for name, value in given.items():
        field = Settings.model_fields[name]
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            field.annotation.model_validate(value)


QUERIES = [
    (path.relative_to(ROOT).as_posix(), block)
    for path in MARKDOWN
    for block in fenced(path.read_text(encoding="utf-8"), "sql")
]


def test_the_page_about_sql_has_queries() -> None:
    assert sum(page == "docs/how-to/sql.md" for page, _ in QUERIES) >= 6


@pytest.mark.parametrize(("page", "query"), QUERIES, ids=[f"{p}-{i}" for i, (p, _) in enumerate(QUERIES)])
def test_queries_run(page: str, query: str, database: str) -> None:
    with psycopg.connect(database) as connection:
        cursor = connection.execute(query)
        assert cursor.description, page


# --- links --------------------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_relative_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        place = (path.parent / target).resolve() if target else path
        assert place.exists(), link
        assert place.is_relative_to(ROOT), link
        if anchor:
            assert anchor in anchors(place), link


def test_every_page_is_linked_from_the_readme() -> None:
    linked = {
        (ROOT / link.partition("#")[0]).resolve() for link in LINK.findall((ROOT / "README.md").read_text("utf-8"))
    }
    pages = {p for p in (ROOT / "docs").rglob("*.md") if "decisions" not in p.parts}
    assert pages <= linked


def test_pages_that_messages_name_exist() -> None:
    named = {
        name
        for package in ("docmill", "flows", "tasks", "serving", "storage", "console")
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(r"docs/[\w/-]+\.md", path.read_text(encoding="utf-8"))
    }
    assert named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []
