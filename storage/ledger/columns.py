"""What the tables are made of: the one metadata, and columns as they recur."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Integer,
    MetaData,
    Text,
    Uuid,
    text,
)

metadata = MetaData()

Time = DateTime(timezone=True)


def primary_id() -> Column[Any]:
    """The key of a row, made by Postgres."""
    return Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()"))


def ref(name: str, target: str, *, on_delete: str = "CASCADE", nullable: bool = False, late: bool = False) -> Any:
    """A reference to another table's row; ``late`` where the two tables refer to each other."""
    key = ForeignKey(f"{target}.id", ondelete=on_delete, use_alter=late, name=f"{name}_known" if late else None)
    return Column(name, Uuid, key, nullable=nullable)


def must(name: str, kind: Any, default: str | None = None) -> Column[Any]:
    """A column that is never null; the default is SQL."""
    return Column(name, kind, nullable=False, server_default=None if default is None else text(default))


def one_of(column: str, values: Iterable[str]) -> CheckConstraint:
    """A check that an enumeration's column holds one of its values."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def lease() -> list[Column[Any]]:
    """Columns of work that is claimed."""
    return [
        Column("lease_holder", Text),
        Column("lease_expires_at", Time),
        must("fence", BigInteger, "0"),
        must("crashes", Integer, "0"),
    ]
