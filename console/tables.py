"""Fields of a document arranged for people: single values, and the rows of tables."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def value_of(field: Row) -> Any:
    """The typed value where there is one, else the text."""
    for column in ("value_number", "value_date", "value_boolean"):
        if field[column] is not None:
            return f"{field[column]} {field['currency']}" if field["currency"] else field[column]
    return field["value_text"] if field["value_text"] is not None else field["raw"]


def single_fields(fields: list[Row]) -> list[Row]:
    """Those that stand in no table and that no other page contradicts with better support, with their ``value``."""
    return [{**field, "value": value_of(field)} for field in fields if field["row"] is None and field["chosen"]]


def cells_of(fields: list[Row]) -> dict[str, tuple[list[str], list[Row]]]:
    """Table name → (columns, rows), in the order they were read. Rows are counted through the pages."""
    tables: dict[str, tuple[list[str], dict[tuple[int, int], Row]]] = {}
    for field in fields:
        if field["row"] is None:
            continue
        table, _, column = field["name"].rpartition(".")
        columns, rows = tables.setdefault(table or "table", ([], {}))
        if column not in columns:
            columns.append(column)
        rows.setdefault((field["page_no"], field["row"]), {})[column] = value_of(field)
    return {name: (columns, [rows[key] for key in sorted(rows)]) for name, (columns, rows) in tables.items()}
