"""What vLLM's ``/metrics`` says, in the same words for every version.

Names were read from ``v1/metrics/loggers.py`` of vLLM 0.24, 0.32 and 0.33: they agree on all but
``admission_rejections``, which 0.24 does not count yet. Counters end in ``_total``, and one family has a further series
by reason (``num_requests_waiting_by_reason``), which is not to be added to the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from docmill.failures import RequestTimeout, ServerNotReady
from docmill.launching import Endpoint

_SUMS = {
    "vllm:num_requests_running": "requests_running",
    "vllm:num_requests_waiting": "requests_waiting",
    "vllm:prompt_tokens_total": "prompt_tokens_total",
    "vllm:generation_tokens_total": "generation_tokens_total",
    "vllm:num_preemptions_total": "preemptions_total",
    "vllm:admission_rejections_total": "admission_rejections_total",
    "vllm:prefix_cache_queries_total": "prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total": "prefix_cache_hits_total",
}
_USAGE = "vllm:kv_cache_usage_perc"
_FAILED = frozenset({"abort", "error"})


@dataclass(frozen=True, slots=True)
class ServerMetrics:
    """One scrape, summed over engines and labels.

    Attributes:
        requests_running: requests that the engine works on.
        requests_waiting: requests that wait for the engine.
        kv_cache_usage: 0 to 1, the mean over engines.
        requests_succeeded_total: answered (finished_reason neither abort nor error). Totals count since the server's
            start.
        generation_tokens_per_second, prompt_tokens_per_second: since an earlier scrape, see :meth:`since`; None
            without one.
    """

    requests_running: int = 0
    requests_waiting: int = 0
    kv_cache_usage: float = 0.0
    prompt_tokens_total: int = 0
    generation_tokens_total: int = 0
    requests_succeeded_total: int = 0
    preemptions_total: int = 0
    admission_rejections_total: int = 0
    prefix_cache_queries_total: int = 0
    prefix_cache_hits_total: int = 0
    generation_tokens_per_second: float | None = None
    prompt_tokens_per_second: float | None = None

    @property
    def busy(self) -> bool:
        """Whether any request runs or waits."""
        return self.requests_running + self.requests_waiting > 0

    @property
    def tokens(self) -> tuple[int, int]:
        """What advances while a server works."""
        return self.prompt_tokens_total, self.generation_tokens_total

    def since(self, earlier: ServerMetrics | None, seconds: float) -> ServerMetrics:
        """The same with rates, from a scrape so many seconds ago.

        A restart in between resets the counters: they count from zero then, and no rate is negative.
        """
        if earlier is None or seconds <= 0:
            return self

        def rate(now: int, then: int) -> float:
            return round((now - then if now >= then else now) / seconds, 2)

        return replace(
            self,
            generation_tokens_per_second=rate(self.generation_tokens_total, earlier.generation_tokens_total),
            prompt_tokens_per_second=rate(self.prompt_tokens_total, earlier.prompt_tokens_total),
        )

    def as_row(self) -> dict[str, Any]:
        """As it is kept in the server's row."""
        return asdict(self)


def _finite(values: Iterable[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]


def parse_metrics(text: str) -> ServerMetrics:
    """Read the Prometheus text of any supported vLLM.

    Raises:
        ServerNotReady: it is not Prometheus text (the answer of something else, or a cut one).
    """
    sums: dict[str, float] = {}
    usage: list[float] = []
    succeeded = 0.0
    try:
        for family in text_string_to_metric_families(text):
            if not family.name.startswith("vllm:"):
                continue
            for sample in family.samples:
                name = sample.name
                if name in _SUMS:
                    sums[_SUMS[name]] = sums.get(_SUMS[name], 0.0) + sum(_finite([sample.value]))
                elif name == _USAGE:
                    usage += _finite([sample.value])
                elif name == "vllm:request_success_total" and sample.labels.get("finished_reason") not in _FAILED:
                    succeeded += sample.value
    except (ValueError, KeyError, IndexError) as error:
        raise ServerNotReady("the server's /metrics are not Prometheus text") from error
    shares = usage or [0.0]
    return ServerMetrics(
        kv_cache_usage=round(sum(shares) / len(shares), 4),
        requests_succeeded_total=round(succeeded),
        **{name: round(value) for name, value in sums.items()},
    )


async def scrape(endpoint: Endpoint, *, timeout_seconds: float = 10.0) -> ServerMetrics:
    """One scrape of a server.

    Raises:
        RequestTimeout: no answer in time.
        ServerNotReady: no connection, or no metrics there.
    """
    headers = {"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {}
    try:
        async with httpx.AsyncClient(trust_env=False, timeout=timeout_seconds, headers=headers) as client:
            answer = await client.get(f"{endpoint.base_url}/metrics")
    except httpx.TimeoutException as error:
        raise RequestTimeout(f"no answer from /metrics within {timeout_seconds:g} s") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ServerNotReady(f"no connection to /metrics: {type(error).__name__}") from error
    if answer.status_code != 200:
        raise ServerNotReady(f"/metrics answered {answer.status_code}")
    return parse_metrics(answer.text)
