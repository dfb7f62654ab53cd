"""Document types: what to extract, written in YAML, checked with clear messages."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic import Field as Setting

from docmill.extraction import FieldKind
from docmill.failures import ConfigurationError

Name = Annotated[str, Setting(pattern=r"^[a-z][a-z0-9_]*$", description="lower case, digits and underscores")]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Validators(_Model):
    """What a value must satisfy. A value that does not is kept and marked for review."""

    pattern: str | None = Setting(None, description="regular expression that the whole normalised text must match")
    minimum: float | None = None
    maximum: float | None = None
    max_length: int | None = Setting(None, ge=1)
    equals_sum_of: str | None = Setting(None, description="table column (`items.amount`) whose sum it must equal")
    not_before: Name | None = Setting(None, description="date field that must not be later than this one")


class FieldSpec(_Model):
    """One field of a document type.

    Attributes:
        aliases: the labels it is printed with, in any language; compared without case, blanks and punctuation.
        role: what position and arithmetic know beyond labels: ``issuer`` (the name at the head of the page),
            ``issuer_address``, ``document_date``, ``grand_total``, ``subtotal``, ``tax``.
        columns: for kind ``table``, the fields of one row.
    """

    name: Name
    kind: FieldKind = FieldKind.TEXT
    description: str = ""
    aliases: tuple[str, ...] = ()
    required: bool = False
    role: Literal["issuer", "issuer_address", "document_date", "grand_total", "subtotal", "tax"] | None = None
    options: tuple[str, ...] = Setting((), description="for kind enum: the values it may take")
    columns: tuple[FieldSpec, ...] = ()
    validators: Validators = Validators()

    @model_validator(mode="after")
    def _columns_fit_the_kind(self) -> Self:
        if bool(self.columns) != (self.kind is FieldKind.TABLE):
            raise ValueError("columns go with kind: table, and a table needs them")
        if bool(self.options) != (self.kind is FieldKind.ENUM):
            raise ValueError("options go with kind: enum, and an enum needs them")
        return self


class DocumentType(_Model):
    """What to extract from one kind of document.

    Attributes:
        fields: empty for ``generic``: then the key-value pairs, check boxes and tables that are found.
        date_order: how a date such as 03/04/2018 is to be read where the page does not decide it.
        review_threshold: confidence below which a field needs review.
    """

    name: Name
    description: str = ""
    fields: tuple[FieldSpec, ...] = ()
    date_order: Literal["DMY", "MDY", "YMD"] = "DMY"
    default_currency: str | None = Setting(None, pattern=r"^[A-Z]{3}$")
    review_threshold: float = Setting(0.6, ge=0, le=1)
    hints: str = ""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [f.name for f in self.fields]
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise ValueError(f"field names used twice: {', '.join(twice)}")
        return self

    @property
    def fingerprint(self) -> str:
        """A hash of everything in it; part of extractor_version."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def parse_document_type(data: Any, *, where: str) -> DocumentType:
    """Check and build a document type.

    Args:
        data: what YAML gave.
        where: its file, for the message.

    Raises:
        ConfigurationError: naming each wrong key or value, its place and what is allowed.
    """
    try:
        return DocumentType.model_validate(data)
    except ValidationError as error:
        places = "; ".join(
            f"{'.'.join(str(part) for part in e['loc']) or 'the file'}: {e['msg']}" for e in error.errors()[:8]
        )
        raise ConfigurationError(
            f"document type {where} is wrong: {places}",
            remedy="see docs/reference/document-types.md for what is allowed",
        ) from error


def builtin_folder() -> Path:
    """The folder of the document types that come with docmill (in a checkout and in an installed wheel)."""
    inside = Path(__file__).parent / "builtin" / "document_types"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "document_types"


@cache
def _read(path: Path, _changed: float) -> DocumentType:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"document type {path} is not YAML", remedy="mend the file") from error
    return parse_document_type(data, where=str(path))


def available(extra: Path | None = None) -> dict[str, Path]:
    """Name → file of every document type; those in ``extra`` win over the built-in ones of the same name."""
    found: dict[str, Path] = {}
    for folder in (builtin_folder(), extra):
        if folder is not None and folder.is_dir():
            found.update({path.stem: path for path in sorted(folder.glob("*.yaml"))})
    return found


def load_document_type(name: str, extra: Path | None = None) -> DocumentType:
    """A document type by name, or from a file where ``name`` ends in .yaml or .yml.

    Raises:
        ConfigurationError: there is none of that name (the message lists those there are), or it is wrong.
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise ConfigurationError(f"no document type file {name}", remedy="check the path")
    else:
        files = available(extra)
        if name not in files:
            raise ConfigurationError(
                f"no document type {name!r}", remedy=f"use one of {', '.join(files)}, or give a .yaml file"
            )
        path = files[name]
    return _read(path, path.stat().st_mtime)
