"""What a supervisor asks its server over HTTP."""

from __future__ import annotations

from typing import Any

import httpx

from docmill.failures import DocmillError, RequestTimeout, ServerNotReady, ServerOverloaded
from docmill.launching import Endpoint
from docmill.model_failures import BadRequest, ServedNameUnknown, ServerRefused
from serving.supervision.metrics import ServerMetrics, parse_metrics
from serving.supervision.tiny_image import tiny_image_uri


def _error(answer: httpx.Response, path: str) -> DocmillError:
    status = answer.status_code
    if status in (401, 403):
        return ServerRefused(f"the server refuses the key ({status} from {path})")
    if status in (429, 503):
        return ServerOverloaded(f"the server answered {status} to {path}")
    if status in (400, 413, 422):
        # Only the supervisor's own question was sent, so the body quotes no page.
        return BadRequest(
            f"the server refuses the supervisor's question ({status})", detail={"body": answer.text[:1000]}
        )
    return ServerNotReady(f"the server answered {status} to {path}")


class ServerApi:
    """One server's HTTP side; :meth:`close` it.

    Every method raises RequestTimeout where no answer comes in time, ServerNotReady where none can (or 5xx),
    ServerOverloaded (429, 503), ServerRefused (401, 403).
    """

    def __init__(self, endpoint: Endpoint, timeout_seconds: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout_seconds
        headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
        self._client = httpx.AsyncClient(
            base_url=endpoint.base_url, trust_env=False, timeout=timeout_seconds, headers=headers
        )

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def healthy(self) -> bool:
        """Whether /health answers 200."""
        try:
            await self._ask("GET", "/health")
        except (ServerNotReady, ServerOverloaded, RequestTimeout):
            return False
        return True

    async def check_name(self) -> None:
        """Raise ServedNameUnknown unless /v1/models lists the served name."""
        listed = await self._json("GET", "/v1/models")
        try:
            names = [str(model["id"]) for model in listed["data"]]
        except (KeyError, TypeError) as error:
            raise ServerNotReady("/v1/models is no list of models") from error
        if self._endpoint.served_name not in names:
            raise ServedNameUnknown(
                f"the server lists {', '.join(names) or 'no model'}, not {self._endpoint.served_name}",
                remedy="something else may listen on the port; or check --served-model-name",
            )

    async def answer_about_image(self, timeout_seconds: float) -> int:
        """Let it generate a few tokens about a tiny picture; how many it counted.

        Raises:
            BadRequest: it takes no such request (a model without vision, say).
        """
        content = [
            {"type": "image_url", "image_url": {"url": tiny_image_uri()}},
            {"type": "text", "text": "What is on the picture?"},
        ]
        return await self._generate(content, 4, timeout_seconds)

    async def answer_briefly(self, timeout_seconds: float) -> int:
        """Let it generate one token on text: the probe."""
        return await self._generate("Hi", 1, timeout_seconds)

    async def metrics(self) -> ServerMetrics:
        """A scrape."""
        return parse_metrics((await self._ask("GET", "/metrics")).text)

    async def sleep(self, timeout_seconds: float) -> bool:
        """Put it to sleep (level 1: weights go to the host's memory); False where the build cannot."""
        return await self._ask("POST", "/sleep?level=1", timeout_seconds=timeout_seconds, missing_ok=True) is not None

    async def wake_up(self, timeout_seconds: float) -> None:
        """Wake it."""
        await self._ask("POST", "/wake_up", timeout_seconds=timeout_seconds)

    async def _generate(self, content: Any, max_tokens: int, timeout_seconds: float) -> int:
        body = {
            "model": self._endpoint.served_name,
            "messages": [{"role": "user", "content": content}],
            "max_tokens": max_tokens,
            "temperature": 0,
        }
        answer = await self._json("POST", "/v1/chat/completions", json=body, timeout_seconds=timeout_seconds)
        try:
            count = int(answer["usage"]["completion_tokens"])
        except (KeyError, TypeError, ValueError) as error:
            raise ServerNotReady("the server's answer counts no tokens") from error
        if count < 1:
            raise ServerNotReady("the server's answer is empty")
        return count

    async def _json(self, method: str, path: str, **options: Any) -> Any:
        answer = await self._ask(method, path, **options)
        try:
            return answer.json()
        except ValueError as error:
            raise ServerNotReady(f"the answer to {path} is not JSON") from error

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        timeout_seconds: float | None = None,
        missing_ok: bool = False,
    ) -> Any:
        timeout = self._timeout if timeout_seconds is None else timeout_seconds
        try:
            answer = await self._client.request(method, path, json=json, timeout=timeout)
        except httpx.TimeoutException as error:
            raise RequestTimeout(f"no answer to {path} within {timeout:g} s") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServerNotReady(f"no answer to {path}: {type(error).__name__}") from error
        if missing_ok and answer.status_code in (404, 405):
            return None
        if answer.status_code != 200:
            raise _error(answer, path)
        return answer
