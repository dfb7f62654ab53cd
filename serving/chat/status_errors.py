"""The table from HTTP status to error, and what is kept of an answer's body."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from docmill.failures import ConfigurationError, DocmillError, RequestTimeout, ServerOverloaded
from docmill.model_failures import BadRequest, ServedNameUnknown, ServerFault, ServerRefused

BODY_CHARACTERS = 8192
"""As much of a body is kept."""

_DATA_URI = re.compile(r"data:[\w.+/\\-]{0,80};base64,[\w+/=\\-]*")
_LONG_RUN = re.compile(r"[A-Za-z0-9+/=_\\-]{400,}")


def kept_body(text: str) -> str:
    """A body as it is kept in a failure's detail: without the pictures that it echoes, at most BODY_CHARACTERS long."""
    cut = _LONG_RUN.sub(_shortened, _DATA_URI.sub(_shortened, text))
    return cut if len(cut) <= BODY_CHARACTERS else f"{cut[:BODY_CHARACTERS]}… ({len(cut)} characters)"


def _shortened(found: re.Match[str]) -> str:
    return f"[picture, {len(found[0])} characters]"


def retry_after_seconds(value: str | None, *, now: datetime | None = None) -> float | None:
    """The header Retry-After as seconds from now: given as a number or as an HTTP date; None where it is neither."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            when = parsedate_to_datetime(value)
        except ValueError:
            return None
        seconds = (when.replace(tzinfo=when.tzinfo or UTC) - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if seconds < float("inf") else None


def error_of_status(
    status: int, body: str, *, server: str, model: str, listed: tuple[str, ...] = (), retry_after: str | None = None
) -> DocmillError:
    """The error that an answer's status stands for; ``detail`` has ``status``, ``body``, ``server``."""
    detail: dict[str, object] = {"status": status, "body": kept_body(body), "server": server}
    said = f"{server} answered {status}"
    if status in (401, 403):
        return ServerRefused(f"{said}: it refuses the key", detail=detail)
    if status == 404:
        names = f"; it lists {', '.join(listed)}" if listed else ""
        return ServedNameUnknown(f"{said}: it does not serve {model!r}{names}", detail=detail)
    if status == 408:
        return RequestTimeout(said, detail=detail)
    if status in (429, 503):
        seconds = retry_after_seconds(retry_after)
        if seconds is not None:
            detail["retry_after"] = seconds
        return ServerOverloaded(f"{said}: it has too much to do", detail=detail)
    if 300 <= status < 400:
        return ConfigurationError(
            f"{said}: it sends requests elsewhere, where pages are not sent",
            remedy="name the server's own address in serving.base_urls",
            detail=detail,
        )
    if 400 <= status < 500:
        return BadRequest(f"{said}: it refuses the request", detail=detail)
    return ServerFault(said, detail=detail)
