"""Waiting for services that are away for a moment."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from docmill.failures import TransientError
from docmill.retrying import backoff_seconds

logger = logging.getLogger(__name__)
Result = TypeVar("Result")


async def patiently(call: Callable[[], Awaitable[Result]], patience_seconds: float) -> Result:
    """The call's result, tried again after transient errors for as long as the patience lasts.

    Only for calls that may be made twice (the ledger's writes are fenced, so they may).

    Raises:
        TransientError: the last one, when the patience is at its end.
    """
    began = time.monotonic()
    tries = 0
    while True:
        try:
            return await call()
        except TransientError as error:
            tries += 1
            wait = backoff_seconds(tries)
            if time.monotonic() - began + wait > patience_seconds:
                raise
            logger.warning("%s, trying again in %.1f s (try %d)", error.code, wait, tries)
            await asyncio.sleep(wait)
