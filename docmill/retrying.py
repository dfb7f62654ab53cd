"""What to do about an error, as a pure decision."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from docmill.failures import Disposition, Failure

FIRST_WAIT_SECONDS = 0.5
LONGEST_WAIT_SECONDS = 30.0


class Step(StrEnum):
    """What comes next for a page."""

    WAIT = "wait"  # the same request again, after a wait; spends no attempt
    RESAMPLE = "resample"  # an attempt is spent; the next one changes something
    GIVE_UP = "give_up"  # the failure row


@dataclass(frozen=True, slots=True)
class Decision:
    """The next step, and for WAIT how long."""

    step: Step
    wait_seconds: float = 0.0


def backoff_seconds(tries: int, *, retry_after: float | None = None, jitter: float | None = None) -> float:
    """Seconds to wait after the ``tries``-th failure in a row (1, 2, ...).

    Doubles from half a second to half a minute, spread over the upper half ("equal jitter"); never less than what the
    server asked for with Retry-After.

    Args:
        tries: failures in a row so far, at least 1.
        retry_after: seconds.
        jitter: 0 to 1, drawn when left out.
    """
    longest = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(tries - 1, 16))
    drawn = random.random() if jitter is None else jitter
    return max(longest * (0.5 + 0.5 * drawn), retry_after or 0.0)


def decide(
    failure: Failure, *, attempt_no: int, max_attempts: int, tries: int, waited_seconds: float, patience_seconds: float
) -> Decision:
    """What comes next.

    Args:
        failure: what happened; ``detail["retry_after"]`` in seconds is honoured.
        attempt_no: 1 for the first attempt at the page.
        max_attempts: attempts a page gets.
        tries: transient failures in a row within this attempt, this one included.
        waited_seconds: how long this attempt has waited for services so far.
        patience_seconds: how long it may.
    """
    match failure.disposition:
        case Disposition.RETRY if waited_seconds < patience_seconds:
            asked = failure.detail.get("retry_after")
            wait = backoff_seconds(tries, retry_after=float(asked) if isinstance(asked, int | float) else None)
            return Decision(Step.WAIT, wait)
        case Disposition.RESAMPLE if attempt_no < max_attempts:
            return Decision(Step.RESAMPLE)
        case _:
            return Decision(Step.GIVE_UP)
