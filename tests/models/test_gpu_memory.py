"""The KV cache that is left, against what vLLM 0.24 logged on H200s (benchmarks/, docs/gpu.md)."""

import pytest

from docmill.models.gpus import GIB, Gpu, parse_gpus
from docmill.models.memory import batch_defaults, block_tokens, graph_bytes, kv_bytes_per_token, memory_plan
from docmill.models.naming import load_profile

H200 = parse_gpus("H200")[1]
MEASURED = {  # utilisation 0.9, one picture a request, CUDA graphs on
    ("qwen2-vl-2b", 1): 4_436_240,
    ("qwen2-vl-7b", 1): 2_003_776,
    ("qwen2-vl-72b", 2): 347_152,
}


@pytest.mark.parametrize(("what", "tokens"), MEASURED.items(), ids=[f"{n}-tp{s}" for n, s in MEASURED])
def test_kv_tokens_are_those_that_vllm_logged(what: tuple[str, int], tokens: int) -> None:
    name, size = what
    assert memory_plan(load_profile(name), H200, size).kv_tokens == pytest.approx(tokens, rel=0.02)


def test_half_a_72b_is_what_vllm_logged() -> None:
    whole = load_profile("qwen2-vl-72b")
    half = whole.model_copy(update={"text": whole.text.model_copy(update={"layers": 40})})
    found = memory_plan(half, H200, 1)
    logged = 337_760  # with --enforce-eager, so nothing was set aside for CUDA graphs, which the plan counts
    assert found.kv_tokens == pytest.approx(logged, rel=0.1)
    assert (found.kv_cache + graph_bytes(half, 1)) / found.kv_bytes_per_token == pytest.approx(logged, rel=0.01)
    assert found.weights / GIB == pytest.approx(71.37, rel=0.005)
    assert found.activations / GIB == pytest.approx(2.69, rel=0.05)


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("qwen2-vl-7b", 1, 28 * 2 * 4 * 128 * 2),
        ("qwen2-vl-7b", 4, 28 * 2 * 1 * 128 * 2),
        ("qwen2-vl-72b", 2, 80 * 2 * 4 * 128 * 2),
        ("qwen3-vl-30b-a3b", 8, 48 * 2 * 1 * 128 * 2),  # 4 heads over 8 GPUs: each holds one
        ("minimax-m3", 8, 60 * 2 * 1 * 128 * 2 + 57 * 128 * 2),  # and the index keys of the sparse layers
    ],
)
def test_bytes_of_one_token(name: str, size: int, expected: int) -> None:
    assert kv_bytes_per_token(load_profile(name), size) == expected


@pytest.mark.parametrize(("name", "block"), [("qwen2-vl-7b", 16), ("minimax-m3", 128)])
def test_tokens_come_in_whole_blocks(name: str, block: int) -> None:
    profile = load_profile(name)
    assert block_tokens(profile) == block
    assert memory_plan(profile, H200, 8).kv_tokens % block == 0


def test_the_parts_add_up() -> None:
    found = memory_plan(load_profile("qwen2-vl-7b"), H200, 1, utilization=0.8)
    assert found.usable == pytest.approx(0.8 * found.total, abs=1)
    assert found.weights + found.activations + found.other + found.kv_cache == found.usable
    assert found.kv_tokens * found.kv_bytes_per_token <= found.kv_cache


def test_nothing_is_left_where_the_weights_do_not_fit() -> None:
    found = memory_plan(load_profile("qwen2-vl-72b"), parse_gpus("1x24GB")[1], 1)
    assert found.kv_cache < 0
    assert found.kv_tokens == 0


def test_fewer_requests_at_once_leave_more_room() -> None:
    profile = load_profile("qwen2-vl-2b")
    many, few = (memory_plan(profile, H200, 1, sequences=each).kv_tokens for each in (4096, 16))
    assert few > many


@pytest.mark.parametrize(
    ("name", "defaults"),
    [
        ("H200", (8192, 1024)),
        ("H100", (8192, 1024)),
        ("B200", (16384, 1024)),
        ("A100-80GB", (2048, 256)),
        ("RTX4090", (2048, 256)),
    ],
)
def test_vllms_own_defaults(name: str, defaults: tuple[int, int]) -> None:
    assert batch_defaults(parse_gpus(name)[1]) == defaults


def test_a_gpu_of_this_machine_is_known_by_its_memory() -> None:
    assert batch_defaults(Gpu("A100-SXM4-80GB", 79 * GIB)) == (2048, 256)
