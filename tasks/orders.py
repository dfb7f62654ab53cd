"""What a drain task is told: flat and small, since it may travel to another machine."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class DrainOrder:
    """Which batch to work on, and how.

    Attributes:
        slot: number of the worker slot, for the claim's holder and the logs.
        force: read pages again even where the same bytes were read under this version before.
    """

    batch_id: UUID
    document_type: str
    engine: str
    slot: int
    force: bool = False
