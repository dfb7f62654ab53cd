"""The OpenAI SDK as docmill uses it.

It is imported when the first request is sent, since that takes most of a second.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx

from docmill.failures import ConfigurationError, DocmillError, RequestTimeout, ServerNotReady
from docmill.launching import Endpoint
from docmill.model_failures import ServerFault, ServerRestarted
from serving.chat.health import authorization
from serving.chat.pooled_server import PooledServer
from serving.chat.status_errors import error_of_status

if TYPE_CHECKING:
    from openai import AsyncOpenAI, Omit

_UNWANTED_HEADERS = ("x-stainless-retry-count", "x-stainless-read-timeout")


async def new_sdk(client: httpx.AsyncClient) -> AsyncOpenAI:
    """A client without retries and without anything from the environment.

    The SDK would send OPENAI_API_KEY, the organisation and further headers of the environment to wherever it is
    pointed, and say what machine it runs on. Addresses and keys come with each request instead.
    """
    await asyncio.to_thread(importlib.import_module, "openai")
    from openai import AsyncOpenAI

    class BareClient(AsyncOpenAI):
        @property
        def auth_headers(self) -> dict[str, str]:
            return {}

        @property
        def default_headers(self) -> dict[str, str | Omit]:
            return {
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
                "User-Agent": "docmill",
            }

    return BareClient(
        api_key="none",
        base_url="http://127.0.0.1/",  # never used
        max_retries=0,
        http_client=client,  # type: ignore[arg-type]  # the SDK takes both generations of httpx
    )


def headers_of(endpoint: Endpoint, request_id: UUID) -> dict[str, Any]:
    """The headers of one request: the endpoint's key, and a name that vLLM writes into its log."""
    from openai import Omit

    omitted = dict.fromkeys(("Authorization", *_UNWANTED_HEADERS), Omit())
    return {**omitted, **authorization(endpoint), "X-Request-Id": str(request_id)}


def translated(error: Exception, server: PooledServer) -> DocmillError | None:
    """The error of the SDK or of httpx as one of docmill's, by its type and status alone; None for any other."""
    from openai import APIConnectionError, APIStatusError, OpenAIError

    if isinstance(error, APIStatusError):
        response = error.response
        return error_of_status(
            error.status_code,
            response.text,
            server=server.url,
            model=server.model,
            listed=server.models,
            retry_after=response.headers.get("retry-after"),
        )
    cause = error.__cause__ if isinstance(error, APIConnectionError) else error
    detail: dict[str, Any] = {"server": server.url, "type": type(cause).__name__}
    match cause:
        case httpx.ConnectError() | httpx.ConnectTimeout() | httpx.PoolTimeout():
            return ServerNotReady(f"no connection to {server.url}", detail=detail)
        case httpx.TimeoutException():
            return RequestTimeout(f"{server.url} did not answer in time", detail=detail)
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError() | httpx.InvalidURL():
            return ConfigurationError(
                f"no request can be sent to {server.url}",
                remedy="check serving.base_urls and serving.api_key_file",
                detail=detail,
            )
        case httpx.TransportError():
            return ServerRestarted(f"the connection to {server.url} broke during a request", detail=detail)
        case httpx.HTTPError() | OpenAIError() | OSError():
            return ServerFault(f"{server.url} answered with something that cannot be read", detail=detail)
    return None
