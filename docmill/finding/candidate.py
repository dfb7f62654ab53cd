"""A value that a rule proposes for a field."""

from __future__ import annotations

from dataclasses import dataclass

from docmill.finding.sheet import Piece


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a rule found.

    Attributes:
        piece: the value with its box.
        quality: how far the rule is to be trusted, 0 to 1 (label match times geometry).
        rule: its name, for the record.
        label: the printed label, None where position or arithmetic found it.
        notes: short codes that go to the field.
    """

    piece: Piece
    quality: float
    rule: str
    label: Piece | None = None
    notes: tuple[str, ...] = ()
