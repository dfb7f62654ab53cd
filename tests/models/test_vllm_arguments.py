"""The flags of vLLM's server."""

import json
from typing import Any

import pytest

from docmill.models.arguments import vllm_arguments
from docmill.models.gpus import parse_gpus
from docmill.models.naming import load_profile, profile_names
from docmill.models.variants import quantized
from docmill.settings import ServingSettings


def compiled(name: str = "qwen2-vl-7b", settings: dict[str, Any] | None = None, **more: Any) -> tuple[str, ...]:
    given = {"tensor_parallel_size": 1, "host": "127.0.0.1", "port": 8000, "model": "/m", "served_name": name} | more
    profile = given.pop("profile", None) or load_profile(name)
    return vllm_arguments(profile, settings=ServingSettings(**(settings or {})), **given)


def value(arguments: tuple[str, ...], flag: str) -> str:
    assert arguments.count(flag) == 1, arguments
    return arguments[arguments.index(flag) + 1]


def test_all_of_a_plain_start() -> None:
    assert compiled() == (
        "--model", "/m",
        "--served-model-name", "qwen2-vl-7b",
        "--host", "127.0.0.1",
        "--port", "8000",
        "--tensor-parallel-size", "1",
        "--max-model-len", "16384",
        "--gpu-memory-utilization", "0.9",
        "--enable-sleep-mode",
        "--limit-mm-per-prompt", '{"image": 1, "video": 0}',
        "--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}',
    )  # fmt: skip


def test_minimax_m3() -> None:
    arguments = compiled("minimax-m3", tensor_parallel_size=8)
    assert "--enable-expert-parallel" in arguments
    assert value(arguments, "--block-size") == "128"
    assert value(arguments, "--mm-encoder-tp-mode") == "data"
    assert json.loads(value(arguments, "--mm-processor-kwargs")) == {"max_long_side_pixel": 2016}
    assert value(arguments, "--max-model-len") == "131072"


def test_experts_are_not_spread_over_one_gpu() -> None:
    assert "--enable-expert-parallel" not in compiled("qwen3-vl-30b-a3b-fp8")
    assert "--enable-expert-parallel" in compiled("qwen3-vl-30b-a3b-fp8", tensor_parallel_size=2)


def test_a_cpu() -> None:
    arguments = compiled(platform="cpu", version="0.32.0")
    assert value(arguments, "--dtype") == "bfloat16"
    assert "--enforce-eager" in arguments
    assert not {"--gpu-memory-utilization", "--enable-sleep-mode"} & set(arguments)


@pytest.mark.parametrize("name", profile_names())
@pytest.mark.parametrize("platform", ["cuda", "cpu"])
def test_what_is_never_among_them(name: str, platform: str) -> None:
    secret = {"api_key": "s3cret", "max_queued_requests": 5, "max_num_seqs": 4}
    arguments = compiled(name, secret, platform=platform, version="0.33.0")
    flags = {each.partition("=")[0] for each in arguments if each.startswith("--")}
    assert not flags & {"--swap-space", "--disable-log-requests", "--api-key", "--guided-decoding-backend"}
    assert not any("guided" in each or "s3cret" in each for each in arguments)
    assert len(flags) == sum(each.startswith("--") for each in arguments)


@pytest.mark.parametrize(
    ("settings", "given", "length"),
    [({}, None, "16384"), ({"max_model_len": 8192}, None, "8192"), ({"max_model_len": 8192}, 4096, "4096")],
)
def test_the_context_comes_from_the_nearest(settings: dict[str, Any], given: int | None, length: str) -> None:
    assert value(compiled(settings=settings, max_model_len=given), "--max-model-len") == length


@pytest.mark.parametrize(
    ("settings", "more", "limit"),
    [
        ({"max_queued_requests": 32, "max_num_seqs": 8}, {"version": "0.32.0"}, "40"),
        ({"max_queued_requests": 32}, {"version": "0.32.0", "gpu": parse_gpus("H200")[1]}, "1056"),
        ({"max_queued_requests": 32}, {"version": "0.32.0"}, "288"),
        ({"max_queued_requests": 32}, {"version": "0.32.1+cpu", "platform": "cpu"}, "160"),
    ],
)
def test_the_queue_is_bounded_beyond_what_is_worked_on(
    settings: dict[str, Any], more: dict[str, Any], limit: str
) -> None:
    arguments = compiled(settings=settings, **more)
    assert value(arguments, "--max-num-queued-reqs") == limit
    assert int(value(arguments, "--max-num-seqs")) == int(limit) - 32


@pytest.mark.parametrize(
    ("settings", "version"), [({"max_queued_requests": 32}, "0.24.0"), ({}, "0.32.0"), ({"max_num_seqs": 8}, "0.32.0")]
)
def test_the_queue_is_not_bounded_where_nobody_asks_or_vllm_cannot(settings: dict[str, Any], version: str) -> None:
    assert "--max-num-queued-reqs" not in compiled(settings=settings, version=version)


@pytest.mark.parametrize("method", ["awq", "awq_marlin", "gptq-int4", "gptq_int8"])
def test_a_checkpoint_that_says_its_quantisation_gets_no_flag(method: str) -> None:
    profile = quantized(load_profile("qwen2-vl-7b"), method)
    assert "--quantization" not in compiled(profile=profile, settings={"quantization": method})


def test_weights_that_vllm_makes_smaller() -> None:
    profile = quantized(load_profile("qwen2-vl-7b"), "fp8")
    assert value(compiled(profile=profile), "--quantization") == "fp8"
    here = quantized(load_profile("qwen2-vl-7b").model_copy(update={"folder": "/m"}), "fp8")
    assert value(compiled(profile=here), "--quantization") == "fp8"


def test_further_flags_come_last() -> None:
    more = ("--load-format", "dummy", "--max-model-len", "1024")
    assert compiled("minimax-m3", {"extra_arguments": more})[-4:] == more


def test_settings_become_flags() -> None:
    settings = {"gpu_memory_utilization": 0.75, "max_num_seqs": 12}
    arguments = compiled(settings=settings, host="0.0.0.0", port=9000, tensor_parallel_size=2, served_name="forms")
    shown = {flag: value(arguments, flag) for flag in ("--host", "--port", "--max-num-seqs", "--served-model-name")}
    assert shown == {"--host": "0.0.0.0", "--port": "9000", "--max-num-seqs": "12", "--served-model-name": "forms"}
    assert value(arguments, "--gpu-memory-utilization") == "0.75"
    assert value(arguments, "--tensor-parallel-size") == "2"
