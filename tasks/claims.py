"""Keeping claims alive while their pages are worked on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from docmill.failures import TransientError
from docmill.ledger import DocumentClaim, Ledger, PageClaim

Claim = DocumentClaim | PageClaim


def claim_id(claim: Claim) -> UUID:
    """page_id or reading_id."""
    return claim.page_id if isinstance(claim, PageClaim) else claim.reading_id


class HeldClaims:
    """The claims of one shard: what is still held, and what was lost to another worker."""

    def __init__(self, claims: Sequence[Claim]) -> None:
        self._held: dict[UUID, Claim] = {claim_id(c): c for c in claims}
        self.lost: set[UUID] = set()

    def done(self, claim: Claim) -> None:
        """It was recorded: no longer renewed and not given back at the end."""
        self._held.pop(claim_id(claim), None)

    def is_lost(self, claim: Claim) -> bool:
        """Whether another worker has it now."""
        return claim_id(claim) in self.lost

    @property
    def held(self) -> list[Claim]:
        """Neither recorded nor lost."""
        return list(self._held.values())

    def lose(self, ids: set[UUID]) -> None:
        """Forget what is lost."""
        self.lost |= ids
        for lost in ids:
            self._held.pop(lost, None)


@contextlib.asynccontextmanager
async def holding(ledger: Ledger, claims: Sequence[Claim], lease_seconds: float) -> AsyncIterator[HeldClaims]:
    """Renew the leases every third of their life; at the end give back what was not recorded.

    Giving back also happens when the body is cancelled; where Postgres is away then, the leases expire by themselves.
    """
    held = HeldClaims(claims)

    async def beat() -> None:
        while True:
            await asyncio.sleep(lease_seconds / 3)
            if not held.held:
                continue
            # Postgres away for a moment: the next beat tries again, and the fence guards what is recorded
            with contextlib.suppress(TransientError):
                held.lose(await ledger.renew(held.held, lease_seconds))

    heart = asyncio.create_task(beat())
    try:
        yield held
    finally:
        heart.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await heart
        if held.held:
            with contextlib.suppress(TransientError, TimeoutError):
                async with asyncio.timeout(lease_seconds):
                    await asyncio.shield(ledger.release(held.held))
