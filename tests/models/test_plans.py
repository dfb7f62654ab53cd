"""How a model is spread over GPUs, whether it fits, and what would make it fit."""

import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from docmill.failures import ConfigurationError, PageTooLarge
from docmill.model_failures import NotEnoughGpuMemory, ParallelSizeImpossible
from docmill.models.gpus import parse_gpus
from docmill.models.naming import load_profile, profile_names
from docmill.models.planning import Plan, plan, require_fit
from docmill.models.splitting import possible_sizes, why_not
from docmill.models.variants import ONLINE, quantized, variants_of


def planned(name: str, gpus: str, **more: Any) -> Plan:
    count, gpu = parse_gpus(gpus)
    return plan(load_profile(name), gpu, count, **more)


def told(lines: tuple[str, ...], what: str) -> bool:
    return any(re.search(what, line) for line in lines)


# --- splits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "gpus", "size", "replicas"),
    [
        ("qwen2-vl-2b", "1x24GB", 1, 1),
        ("qwen2-vl-7b", "H200", 1, 1),
        ("qwen2-vl-7b", "8xH100", 1, 8),
        ("qwen2-vl-72b", "2xH200", 2, 1),
        ("qwen2-vl-72b", "8xH200", 2, 4),
        ("qwen2-vl-72b", "4xA100-80GB", 4, 1),
        ("qwen2-vl-72b-awq", "2xH200", 1, 2),
        ("qwen2-vl-7b", "4xT4", 2, 2),
        ("qwen3-vl-235b-a22b", "8xH100", 8, 1),
        ("qwen3-vl-235b-a22b-fp8", "8xH100", 4, 2),
        ("minimax-m3", "8xH200", 8, 1),
        ("minimax-m3-nvfp4", "8xB200", 2, 4),
    ],
)
def test_the_best_split(name: str, gpus: str, size: int, replicas: int) -> None:
    found = planned(name, gpus)
    assert found.fits
    assert (found.tensor_parallel_size, found.replicas) == (size, replicas)
    assert found.memory.kv_tokens >= found.max_model_len
    assert found.pages_at_once >= 1
    assert found.advice == ()


def test_replicas_beat_sharding_where_the_model_fits_one_gpu() -> None:
    assert told(planned("qwen2-vl-7b", "2xH200").reasons, r"fits one GPU: 2 replicas read more pages a second")


def test_the_fewest_gpus_with_room_for_the_cache() -> None:
    assert told(planned("qwen2-vl-72b", "2xH200").reasons, "2 GPUs are the fewest that hold it")
    assert told(planned("qwen2-vl-72b", "8xH200").reasons, "4 replicas of 2 GPUs each")


def test_a_size_that_is_asked_for_is_taken() -> None:
    found = planned("qwen2-vl-7b", "4xH200", tensor_parallel_size=2)
    assert (found.tensor_parallel_size, found.replicas, found.fits) == (2, 2, True)


def test_an_impossible_size_is_refused() -> None:
    with pytest.raises(ParallelSizeImpossible, match="28 attention heads"):
        planned("qwen2-vl-7b", "4xH200", tensor_parallel_size=3)


def test_more_gpus_go_to_one_server_that_is_to_read_more_at_once() -> None:
    assert (
        planned("qwen2-vl-7b", "4xL4").tensor_parallel_size
        < planned("qwen2-vl-7b", "4xL4", concurrency=100).tensor_parallel_size
    )


def test_idle_gpus_are_told() -> None:
    assert told(planned("qwen2-vl-72b", "3xH200").warnings, "1 of 3 GPUs stay idle")


@given(
    name=st.sampled_from(profile_names()),
    gpus=st.sampled_from(["1x24GB", "2xL40S", "3xH100", "4xA100-40GB", "8xH200", "16xB200"]),
    length=st.sampled_from([None, 4096, 100_000]),
)
def test_a_plan_is_one_that_can_be_started(name: str, gpus: str, length: int | None) -> None:
    found = planned(name, gpus, max_model_len=length)
    size = found.tensor_parallel_size
    assert why_not(found.profile, size) == ""
    assert size * found.replicas <= found.gpu_count
    assert found.fits == (found.memory.kv_tokens >= found.max_model_len)
    assert bool(found.advice) == (not found.fits)
    assert (found.pages_at_once > 0) <= found.fits


@given(
    name=st.sampled_from(profile_names()),
    gpus=st.sampled_from(["2xL40S", "4xA100-40GB", "8xH100", "8xH200", "16xB200"]),
)
def test_no_smaller_split_would_do(name: str, gpus: str) -> None:
    found = planned(name, gpus, concurrency=1)
    assume(found.fits)
    for size in possible_sizes(found.profile, found.tensor_parallel_size - 1):
        smaller = planned(name, gpus, tensor_parallel_size=size)
        assert not smaller.fits or smaller.pages_at_once < 1


# --- what would make it fit ----------------------------------------------------------------------------------------


def test_smaller_weights_and_more_gpus() -> None:
    found = planned("qwen2-vl-72b", "1xH200")
    assert not found.fits
    assert told(found.reasons, r"136\.\d GiB of weights on each H200")
    assert told(found.advice, r"qwen2-vl-72b-awq \([\d,]+ tokens\)")
    assert told(found.advice, "--quantization fp8")
    assert told(found.advice, "more GPUs: 2 x H200")


def test_what_is_advised_holds() -> None:
    assert planned("qwen2-vl-72b-awq", "1xH200").fits
    assert planned("qwen2-vl-72b", "1xH200", quantization="fp8").fits
    assert planned("qwen2-vl-72b", "2xH200").fits


def test_a_shorter_context() -> None:
    found = planned("qwen2-vl-7b", "1x24GB", max_model_len=65_536)
    (advice,) = [each for each in found.advice if "--max-model-len" in each]
    length = int(advice.split()[-1])
    assert told(found.reasons, "fewer than one request of 65,536")
    assert planned("qwen2-vl-7b", "1x24GB", max_model_len=length).fits
    assert not planned("qwen2-vl-7b", "1x24GB", max_model_len=length + 1024).fits


def test_more_of_each_gpu() -> None:
    found = planned("qwen2-vl-7b", "1x24GB", max_model_len=32_768, utilization=0.85)
    assert told(found.advice, r"serving\.gpu_memory_utilization = 0\.95")
    assert planned("qwen2-vl-7b", "1x24GB", max_model_len=32_768, utilization=0.95).fits


def test_both_where_one_is_not_enough() -> None:
    assert told(planned("qwen2-vl-72b", "1x24GB").advice, "4 x 24GB with qwen2-vl-72b-awq")


def test_only_weights_that_the_gpu_computes_with_are_advised() -> None:
    advice = planned("minimax-m3", "8xH100").advice
    assert told(advice, "minimax-m3-mxfp8 over 8 GPUs")
    assert not told(advice, "nvfp4")


def test_another_size_where_the_one_asked_for_does_not_hold_it() -> None:
    assert planned("qwen2-vl-72b", "2xH200", tensor_parallel_size=1).advice == ("tensor parallel 2 on these GPUs",)


def test_more_gpus_than_there_are() -> None:
    found = planned("qwen2-vl-72b", "1xH200", tensor_parallel_size=2)
    assert not found.fits
    assert told(found.reasons, "over 2 GPUs is asked for, but there is only 1")
    assert found.advice == ("more GPUs: 2 x H200",)


def test_where_nothing_helps() -> None:
    assert planned("minimax-m3", "1x2GB").advice == ("GPUs with more memory",)


def test_what_does_not_fit_is_an_error_with_the_advice_as_remedy() -> None:
    require_fit(planned("qwen2-vl-72b", "2xH200"))
    with pytest.raises(NotEnoughGpuMemory, match="GiB of weights") as caught:
        require_fit(planned("qwen2-vl-72b", "1xH200"))
    assert "2 x H200" in caught.value.remedy


# --- pages ---------------------------------------------------------------------------------------------------------


def test_pages_at_once_are_what_the_cache_holds_and_vllm_works_on() -> None:
    found = planned("qwen2-vl-7b", "H200")
    assert found.pages_at_once == found.memory.kv_tokens // found.page.total
    assert planned("qwen2-vl-7b", "H200", max_num_seqs=16).pages_at_once == 16


def test_a_page_that_does_not_fit_the_context_is_told() -> None:
    found = planned("qwen2-vl-7b", "H200", max_model_len=4096)
    assert found.page.total == 59 * 84 + 2 + 700 + 1000
    assert not found.page.fits
    assert told(found.warnings, r"1654 x 2339 takes 6,658 tokens .* raise --max-model-len to 7,168")
    assert planned("qwen2-vl-7b", "H200", max_model_len=7168).page.fits


def test_a_page_of_another_size() -> None:
    assert planned("qwen2-vl-7b", "H200", page=(1008, 1288)).page.visual == 36 * 46 + 2
    with pytest.raises(PageTooLarge):
        planned("qwen2-vl-7b", "H200", page=(10, 3000))


def test_few_pages_are_told() -> None:
    assert told(planned("qwen2-vl-7b", "1x24GB").warnings, "fewer than the 8 wanted")


def test_more_context_than_the_model_was_made_for_is_told() -> None:
    assert told(planned("qwen2-vl-7b", "H200", max_model_len=65_536).warnings, "longer than the 32,768")


@pytest.mark.parametrize(
    ("name", "gpus", "method"),
    [("qwen2-vl-2b", "T4", "bfloat16"), ("qwen3-vl-8b-fp8", "A100", "fp8"), ("minimax-m3-nvfp4", "8xH200", "fp4")],
)
def test_weights_that_the_gpu_does_not_compute_with_are_told(name: str, gpus: str, method: str) -> None:
    assert told(planned(name, gpus).warnings, f"does not compute with .*{method}")


# --- quantised -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "method", "found"),
    [
        ("qwen2-vl-7b", None, "qwen2-vl-7b"),
        ("qwen2-vl-7b", "awq", "qwen2-vl-7b-awq"),
        ("qwen2-vl-7b", "AWQ_marlin", "qwen2-vl-7b-awq"),
        ("qwen2-vl-7b", "gptq_int8", "qwen2-vl-7b-gptq-int8"),
        ("qwen2-vl-7b", "gptq", "qwen2-vl-7b-gptq-int4"),
        ("qwen2-vl-7b-awq", "awq", "qwen2-vl-7b-awq"),
        ("qwen2-vl-7b-awq", "gptq-int8", "qwen2-vl-7b-gptq-int8"),
        ("minimax-m3", "nvfp4", "minimax-m3-nvfp4"),
        ("qwen3-vl-8b", "fp8", "qwen3-vl-8b-fp8"),
        ("qwen2-vl-7b", "fp8", "qwen2-vl-7b"),
    ],
)
def test_checkpoints_by_their_method(name: str, method: str | None, found: str) -> None:
    assert quantized(load_profile(name), method).name == found


def test_weights_that_are_made_smaller_as_they_load() -> None:
    assert quantized(load_profile("qwen2-vl-7b"), "fp8").quantization == ONLINE["fp8"]
    here = load_profile("qwen3-vl-8b").model_copy(update={"folder": "/models/forms"})
    mine = quantized(here, "fp8")  # the folder's own weights, not the hub's FP8 checkpoint
    assert (mine.folder, mine.quantization) == ("/models/forms", ONLINE["fp8"])
    assert quantized(here.model_copy(update={"base": None}), None).folder == "/models/forms"


@pytest.mark.parametrize(
    ("name", "method"), [("qwen2-vl-7b", "int3"), ("qwen2-vl-7b-awq", "fp8"), ("minimax-m3", "awq")]
)
def test_a_method_that_is_not_to_be_had_is_told_with_those_that_are(name: str, method: str) -> None:
    with pytest.raises(ConfigurationError, match=f"no {method} of {name} is known") as caught:
        quantized(load_profile(name), method)
    assert "there are " in caught.value.remedy


def test_variants_are_the_other_checkpoints() -> None:
    names = {"qwen2-vl-7b", "qwen2-vl-7b-awq", "qwen2-vl-7b-gptq-int4", "qwen2-vl-7b-gptq-int8"}
    assert {each.name for each in variants_of(load_profile("qwen2-vl-7b-awq"))} == names - {"qwen2-vl-7b-awq"}
