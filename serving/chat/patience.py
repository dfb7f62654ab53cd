"""How long one request has waited for servers."""

from __future__ import annotations


class Patience:
    """Counts the time that a request spends on waiting; what it spends on being answered is not in it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.waited = 0.0

    @property
    def left(self) -> float:
        """Seconds that it may still wait."""
        return max(0.0, self.seconds - self.waited)

    def spend(self, seconds: float) -> None:
        """It has waited so long."""
        self.waited += seconds
