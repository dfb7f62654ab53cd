import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_words import metrics_text
from supervised_server import free_port

from docmill.failures import RequestTimeout, ServerNotReady
from docmill.launching import Endpoint
from serving.supervision.metrics import ServerMetrics, parse_metrics, scrape

STATE = {"running": 3, "waiting": 2, "prompt": 1849, "generated": 256, "succeeded": 7}
TWO_ENGINES = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 1.048576e+06
vllm:generation_tokens_total{engine="1",model_name="m"} 24.0
# TYPE vllm:generation_tokens_created gauge
vllm:generation_tokens_created{engine="0",model_name="m"} 1.796e+09
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 5.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 2.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"} 90.0
vllm:request_success_total{engine="0",finished_reason="error",model_name="m"} 9.0
# TYPE vllm:admission_rejections_total counter
vllm:admission_rejections_total{model_name="m",reason="max_num_queued_reqs"} 11.0
vllm:admission_rejections_total{model_name="m",reason="max_num_queued_tokens"} 1.0
# TYPE python_info gauge
python_info{version="3.12"} 1.0
"""


@pytest.mark.parametrize("version", ["0.24", "0.32"])
def test_both_versions(version):
    found = parse_metrics(metrics_text(version, "qwen", STATE))
    assert (found.requests_running, found.requests_waiting, found.requests_succeeded_total) == (3, 2, 7)
    assert found.tokens == (1849, 256)
    assert found.busy


def test_engines_and_labels_are_summed():
    found = parse_metrics(TWO_ENGINES)
    assert found == ServerMetrics(
        requests_running=7,
        kv_cache_usage=0.5,
        generation_tokens_total=1_048_600,
        requests_succeeded_total=7,
        admission_rejections_total=12,
    )


def test_nothing_of_vllm_and_not_a_number():
    assert parse_metrics("") == ServerMetrics()
    assert parse_metrics("vllm:num_requests_running NaN\nvllm:kv_cache_usage_perc NaN\n") == ServerMetrics()


@pytest.mark.parametrize("text", ["<html>no</html>", "vllm:num_requests_running{", "{}", "vllm:x abc"])
def test_something_else(text):
    with pytest.raises(ServerNotReady):
        parse_metrics(text)


def test_rates():
    now = ServerMetrics(generation_tokens_total=300, prompt_tokens_total=1000)
    rated = now.since(ServerMetrics(generation_tokens_total=100, prompt_tokens_total=1000), 10.0)
    assert (rated.generation_tokens_per_second, rated.prompt_tokens_per_second) == (20.0, 0.0)
    assert now.since(None, 10.0).generation_tokens_per_second is None
    assert now.since(now, 0.0).generation_tokens_per_second is None


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0.001, 1e6))
def test_no_rate_is_negative(now, then, seconds):
    rated = ServerMetrics(generation_tokens_total=now).since(ServerMetrics(generation_tokens_total=then), seconds)
    assert rated.generation_tokens_per_second >= 0


async def test_a_scrape_of_nobody():
    with pytest.raises(ServerNotReady):
        await scrape(Endpoint(f"http://127.0.0.1:{free_port()}"))


async def test_a_scrape_that_takes_too_long():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(RequestTimeout):
            await scrape(Endpoint(f"http://127.0.0.1:{silent.getsockname()[1]}"), timeout_seconds=0.05)


async def test_a_scrape(begin):
    stage = await begin()
    await stage.registry.until(stage.server_id, lambda row: row.state == "ready")
    found = await scrape(Endpoint(stage.launch.base_url))
    assert found.generation_tokens_total == 4
