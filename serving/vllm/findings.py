"""What was found wrong, as data."""

from __future__ import annotations

from dataclasses import dataclass

from docmill.failures import PermanentError


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a model's folder.

    Attributes:
        file: which file, relative to the folder; empty for the folder itself.
        message: what is wrong.
        remedy: what to do.
        error: the error that a start ends with; None: only a warning.
    """

    file: str
    message: str
    remedy: str
    error: type[PermanentError] | None
