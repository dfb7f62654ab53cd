"""Whether a server is well and what it serves."""

from __future__ import annotations

import os
import ssl
from functools import cache
from typing import Any

import httpx

from docmill.failures import ConfigurationError, DocmillError, RequestTimeout, ServerNotReady
from docmill.launching import Endpoint
from docmill.model_failures import ServedNameUnknown, ServerFault, ServerRefused

_NO_SUCH_ROUTE = frozenset({404, 405})


@cache
def _trusted() -> ssl.SSLContext:
    return httpx.create_ssl_context()  # 20 ms: once


def http_client(*, timeout: httpx.Timeout | float) -> httpx.AsyncClient:
    """A client that talks to model servers and to nobody else: no proxy, no redirect, certificates checked.

    Idle connections are dropped before vLLM drops them (after 5 s), so that no request runs into a closed one.
    """
    return httpx.AsyncClient(
        timeout=timeout,
        trust_env=False,
        follow_redirects=False,
        verify=_trusted(),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=2.0),
    )


def authorization(endpoint: Endpoint) -> dict[str, str]:
    """The header with the endpoint's key, if it has one."""
    return {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}


async def alive(client: httpx.AsyncClient, endpoint: Endpoint) -> None:
    """Ask /health. Servers other than vLLM may not have it; an answer is enough then.

    Raises:
        ServerNotReady: no connection, or it says that it is unwell.
        RequestTimeout: no answer in time.
    """
    answer = await _get(client, endpoint, "/health")
    if not answer.is_success and answer.status_code not in _NO_SUCH_ROUTE:
        raise ServerNotReady(f"/health answers {answer.status_code}", detail={"status": answer.status_code})


async def listed_models(client: httpx.AsyncClient, endpoint: Endpoint) -> tuple[str, ...]:
    """The names that the server serves, as /v1/models lists them.

    Raises:
        ServerNotReady, RequestTimeout: as :func:`alive`.
        ServerRefused: it refuses the key.
        ServedNameUnknown: it has no such list, or does not list the endpoint's name.
        ServerFault: the list is none.
    """
    answer = await _get(client, endpoint, "/v1/models")
    status = answer.status_code
    if status in (401, 403):
        raise ServerRefused(f"/v1/models answers {status}", detail={"status": status})
    if status in _NO_SUCH_ROUTE:
        raise ServedNameUnknown("there is no /v1/models", remedy="check serving.base_urls", detail={"status": status})
    if not answer.is_success:
        raise ServerNotReady(f"/v1/models answers {status}", detail={"status": status})
    names = _names(answer)
    if not names:
        raise ServerFault("/v1/models lists no model")
    if endpoint.served_name is not None and endpoint.served_name not in names:
        raise ServedNameUnknown(f"it does not serve {endpoint.served_name!r}, but {', '.join(names)}")
    return names


def _names(answer: httpx.Response) -> tuple[str, ...]:
    try:
        held: Any = answer.json()
        return tuple(each["id"] for each in held["data"] if isinstance(each["id"], str))
    except (ValueError, KeyError, TypeError):
        pass
    raise ServerFault("/v1/models is no list of models", remedy="check serving.base_urls")


def _reason(error: BaseException) -> str:
    """What the system said of a connection that did not come about: the innermost cause's own words."""
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); SSL_CERT_FILE names further authorities"
    if isinstance(error, OSError) and error.strerror:
        # asyncio puts the address into it; the number says what it was, where it is the system's
        return os.strerror(error.errno) if error.errno is not None and error.errno > 0 else error.strerror
    return type(error).__name__


async def _get(client: httpx.AsyncClient, endpoint: Endpoint, path: str) -> httpx.Response:
    problem: DocmillError
    try:
        return await client.get(f"{endpoint.base_url}{path}", headers=authorization(endpoint))
    except httpx.ConnectTimeout:
        problem = ServerNotReady("no connection in time")
    except httpx.TimeoutException:
        problem = RequestTimeout(f"no answer from {path} in time")
    except httpx.TransportError as error:
        problem = ServerNotReady(f"no connection: {_reason(error)}")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        problem = ConfigurationError(f"cannot be asked: {type(error).__name__}", remedy="check serving.base_urls")
    raise problem
