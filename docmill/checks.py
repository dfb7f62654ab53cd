"""One thing that was tried, and how it went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from docmill.failures import DocmillError


@dataclass(frozen=True, slots=True)
class Check:
    """What was tried, how it went, what was found, and what to do about it.

    Attributes:
        error: what a start that goes on regardless would end with; set on failed checks alone.
        detail: further facts for the record (JSON-able).
    """

    what: str
    state: Literal["ok", "warning", "failed"]
    found: str
    remedy: str = ""
    error: type[DocmillError] | None = None
    detail: dict[str, Any] = field(default_factory=dict)
