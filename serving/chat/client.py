"""Ask a model: the one layer that sends a request again."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Self
from uuid import uuid4

from docmill.chat import ChatAnswer, ChatRequest
from docmill.failures import (
    DocmillError,
    PoisonPage,
    RequestTimeout,
    ServerNotReady,
    ServerOverloaded,
    TransientError,
    failure_of,
)
from docmill.model_failures import ServedNameUnknown, ServerFault, ServerRestarted
from docmill.model_servers import ServerRegistry
from docmill.retrying import Step, decide
from serving.chat.in_flight import CrashTimings, InFlight
from serving.chat.patience import Patience
from serving.chat.payload import Payload, payload_of
from serving.chat.pool import EndpointPool
from serving.chat.pooled_server import PooledServer
from serving.chat.sender import Sender, Watch

logger = logging.getLogger(__name__)

POISON_CRASHES = 2
"""A page that was in flight at so many crashes is set aside."""


class ChatClient:
    """Asks the servers of a pool.

    Transient errors are met by sending the same request again, to another server where one is well, for as long as the
    patience lasts; that spends no attempt of a page. Nobody above this needs to send again.

    A request that was in flight when its server crashed is a suspect: it is sent again when a server is well, and no
    other suspect is at that server meanwhile, so that a page that brings servers down takes no other page with it the
    second time. At the second crash it is set aside (PoisonPage).

    Args:
        pool: the servers; it is not closed with the client.
        registry: where notes of what is in flight go, for endpoints that have a row and a lease.
        patience_seconds: how long one request waits for servers, all in all; ``pipeline.transient_patience_seconds``.
    """

    def __init__(
        self,
        pool: EndpointPool,
        registry: ServerRegistry | None = None,
        *,
        patience_seconds: float = 600.0,
        crash_timings: CrashTimings | None = None,
    ) -> None:
        self.pool = pool
        self._patience_seconds = patience_seconds
        self._in_flight = InFlight(registry, pool, crash_timings or CrashTimings())
        self._sender = Sender()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections, once all notes of requests in flight are taken back."""
        await self._in_flight.aclose()
        await self._sender.aclose()

    async def ask(self, request: ChatRequest, *, watch: Watch | None = None) -> ChatAnswer:
        """The model's answer.

        Args:
            request: the question.
            watch: makes a watcher for each send, which sees every piece of text as it comes and may end the answer
                there (``finish_reason`` is ``cut`` then).

        Raises:
            TransientError: the last one (ServerNotReady, ServerRestarted, ServerOverloaded, ServerFault,
                RequestTimeout), when the patience is at its end.
            EmptyOutput: an answer without any choice.
            PoisonPage: the request was in flight at two crashes.
            BadRequest, ServedNameUnknown, ServerRefused, ConfigurationError: sending it again changes nothing.
            ``detail["sends"]`` says how often it was sent.
        """
        asking = _Asking(self, request, await payload_of(request), watch)
        try:
            return await asking.answer()
        except DocmillError as error:
            error.detail.setdefault("sends", asking.sends)
            raise


class _Asking:
    """One request on its way to an answer."""

    def __init__(self, client: ChatClient, request: ChatRequest, payload: Payload, watch: Watch | None) -> None:
        self._client = client
        self._pool = client.pool
        self._request = request
        self._payload = payload
        self._watch = watch
        self._patience = Patience(client._patience_seconds)
        self._failed_at: set[PooledServer] = set()
        self._crashes = 0
        self.sends = 0

    async def answer(self) -> ChatAnswer:
        while True:
            suspect = self._crashes > 0
            async with self._pool.lend(self._patience, alone=suspect, avoid=self._failed_at) as server:
                outcome = await self._sent(server)
            if isinstance(outcome, ChatAnswer):
                return outcome
            self._failed_at.add(server)
            await self._wait_after(outcome)

    async def _sent(self, server: PooledServer) -> ChatAnswer | TransientError:
        """The answer, or what kept it from coming, with its consequences for the server seen to."""
        client = self._client
        note = await client._in_flight.begin(server, uuid4(), self._request.page_id)
        began = asyncio.get_running_loop().time()
        try:
            self.sends += 1
            answer = await client._sender.send(
                server, self._payload, self._request, request_id=note.request_id, watch=self._watch
            )
            self._pool.answered(server)
            return replace(answer, sends=self.sends)
        except ServerOverloaded as error:
            self._pool.rest(server, error, float(error.detail.get("retry_after", 0.0)))
            return error
        except ServerNotReady as error:
            self._pool.failed(server, error, unreachable=True)
            return error
        except RequestTimeout as error:
            self._pool.failed(server, error)
            self._patience.spend(asyncio.get_running_loop().time() - began)
            return error
        except (ServerRestarted, ServerFault) as error:
            self._pool.failed(server, error)
            if await client._in_flight.crashed(server, note):
                await self._was_in_flight(server)
            return error
        except ServedNameUnknown:
            server.suspected.set()
            raise
        finally:
            await client._in_flight.end(note)

    async def _was_in_flight(self, server: PooledServer) -> None:
        self._crashes += 1
        page_id = self._request.page_id
        logger.warning("model server %s went down with a request in flight (page %s)", server.url, page_id or "none")
        crashes = max(self._crashes, await self._client._in_flight.crashes_of(page_id))
        if crashes >= POISON_CRASHES:
            raise PoisonPage(
                f"the page was in flight at {crashes} crashes of its model server",
                detail={"crashes": crashes, "server": server.url},
            )

    async def _wait_after(self, error: TransientError) -> None:
        """Before the next send; the error itself where there is none."""
        patience = self._patience
        decision = decide(
            failure_of(error),
            attempt_no=1,
            max_attempts=1,
            tries=self.sends,
            waited_seconds=patience.waited,
            patience_seconds=patience.seconds,
        )
        if decision.step is not Step.WAIT:
            raise error
        if self._pool.others(self._failed_at):
            return
        if decision.wait_seconds > patience.left:
            raise error
        self._failed_at.clear()
        logger.info("%s, sending again in %.1f s (send %d)", error.code, decision.wait_seconds, self.sends + 1)
        await asyncio.sleep(decision.wait_seconds)
        patience.spend(decision.wait_seconds)
