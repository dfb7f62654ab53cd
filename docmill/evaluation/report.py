"""The result of an evaluation."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class FieldScore:
    """One field over all documents that have an answer for it; failed documents count as wrong.

    Attributes:
        name: of the field.
        kind: of its value.
        documents: that have an answer (an empty answer says that nothing is to be found).
        found: in how many of them something was found.
        exact: how many are equal after normalisation by kind.
        anls: mean similarity, 0 to 1; 1 for those that are exact.
    """

    name: str
    kind: str
    documents: int
    found: int
    exact: int
    anls: float

    @property
    def exact_rate(self) -> float:
        """Share of the documents that are exact, 0 to 1."""
        return self.exact / self.documents if self.documents else 0.0


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many."""

    right: int = 0
    of: int = 0

    @property
    def rate(self) -> float | None:
        """0 to 1; None of nothing."""
        return self.right / self.of if self.of else None

    def __add__(self, other: tuple[int, int] | Share) -> Share:
        right, of = (other.right, other.of) if isinstance(other, Share) else other
        return Share(self.right + right, self.of + of)


@dataclass(frozen=True, slots=True)
class Miss:
    """A field that was not read right. The texts are page contents: they are shown only where asked for."""

    file: str
    field: str
    truth: str
    found: str | None


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """How well a set was read.

    Attributes:
        dataset: its folder.
        pages: that were to be read; pages_failed of them were not.
        failures: file to the code of its failure (of the document, or of its first failed page).
        failures_expected: documents whose failure with that very code is right.
        fields: by name; empty for ``generic``.
        exact, anls: means over the fields of all documents, each answer counting once.
        character_error_rate: edits over characters of the truth, over all pages whose lines are known.
        words, checkboxes, table_cells: how many were read right.
        key_values: for ``generic``, known pairs of which label and value were found.
        values: for ``generic``, those of them whose value was found under any label.
        unscored: names in the truth that the document type does not have.
        seconds_per_page: mean over pages whose time is known.
    """

    dataset: str
    document_type: str
    documents: int
    documents_failed: int
    failures_expected: int
    pages: int
    pages_failed: int
    fields: tuple[FieldScore, ...]
    exact: float | None
    anls: float | None
    character_error_rate: float | None
    words: Share
    checkboxes: Share
    key_values: Share
    values: Share
    table_cells: Share
    seconds_per_page: float | None
    failures: dict[str, str] = field(default_factory=dict)
    unscored: tuple[str, ...] = ()
    misses: tuple[Miss, ...] = ()

    def as_json(self, *, with_misses: bool = False) -> dict[str, Any]:
        """JSON-able; rates are rounded to 4 digits. ``with_misses`` adds what was read wrong, with the texts."""
        record = asdict(self)
        if not with_misses:
            del record["misses"]
        record["fields"] = [{**asdict(f), "exact_rate": f.exact_rate} for f in self.fields]
        for name in ("words", "checkboxes", "key_values", "values", "table_cells"):
            record[name]["rate"] = getattr(self, name).rate
        rounded = _rounded(record)
        assert isinstance(rounded, dict)
        return rounded

    def field_rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """For printing: name, kind, answers, found, exact, ANLS."""
        return [
            (f.name, f.kind, str(f.documents), str(f.found), f"{f.exact} ({f.exact_rate:.1%})", f"{f.anls:.3f}")
            for f in self.fields
        ]

    def summary_rows(self) -> list[tuple[str, str]]:
        """For printing: what is measured, and its figure; what cannot be measured on this set is left out."""
        rows = [
            ("documents", _of(self.documents_failed, self.documents, "failed")),
            ("pages", _of(self.pages_failed, self.pages, "failed")),
        ]
        if self.failures_expected:
            rows.append(("failures that are right", str(self.failures_expected)))
        figures: tuple[tuple[str, float | None, str], ...] = (
            ("fields exact", self.exact, ".1%"),
            ("fields ANLS", self.anls, ".3f"),
            ("characters wrong (CER)", self.character_error_rate, ".4f"),
        )
        rows += [(name, format(figure, form)) for name, figure, form in figures if figure is not None]
        for name, share in (
            ("words read", self.words),
            ("check boxes right", self.checkboxes),
            ("label-value pairs found", self.key_values),
            ("values found under any label", self.values),
            ("table cells found", self.table_cells),
        ):
            if share.rate is not None:
                rows.append((name, f"{share.right} of {share.of} ({share.rate:.1%})"))
        if self.seconds_per_page is not None:
            rows.append(("seconds a page", f"{self.seconds_per_page:.2f}"))
        return rows


def _of(part: int, whole: int, what: str) -> str:
    return f"{whole}, {part} {what}" if part else str(whole)


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    return value
