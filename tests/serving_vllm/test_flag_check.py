import re
from pathlib import Path

import pytest
from vllm_package import write_vllm

from serving.vllm.facts import VllmFacts, vllm_facts
from serving.vllm.flag_changes import REPLACED
from serving.vllm.flag_check import FlagProblem, check_flags


async def facts(folder: Path, version: str = "0.32.0", options: tuple[str, ...] = ()) -> VllmFacts:
    return await vllm_facts(write_vllm(folder / "site", version=version, options=options), folder / "cache")


GOOD = [
    "--model /models/qwen --served-model-name qwen2-vl-7b other --host 127.0.0.1 --port 8000",
    "--max_model_len 32k --max-num-batched-tokens 8K --tensor_parallel_size=2",
    "--max-model-len auto --max-num-seqs None",
    "--max-model-len -1 -tp 2",
    "--gpu-memory-utilization 0.9 --dtype=bfloat16 --enforce-eager --no-enable-prefix-caching",
    '--structured-outputs-config {"backend":"xgrammar","disable_any_whitespace":true}',
    "--structured-outputs-config.backend xgrammar --structured-outputs-config.disable_any_whitespace=true",
    '--limit-mm-per-prompt {"image":2,"video":0} --mm-encoder-tp-mode data',
    "--limit-mm-per-prompt.image 2 --limit_mm_per_prompt.video=0",
    "--moe-backend Deep-GEMM -O3 --optimization-level 2 -O=1",
    "--weights-prefetch --weights-prefetch all",
]


@pytest.mark.parametrize("line", GOOD)
async def test_what_vllm_takes(line: str, tmp_path: Path) -> None:
    assert check_flags(line.split(), await facts(tmp_path)) == []


async def one(line: str, folder: Path, version: str = "0.32.0") -> FlagProblem:
    (problem,) = check_flags(line.split(), await facts(folder, version))
    return problem


@pytest.mark.parametrize(
    ("line", "message", "remedy"),
    [
        ("--swap-space 4", "has no flag --swap-space", "leave it out"),
        ("--swap_space=4", "has no flag --swap-space", "leave it out"),
        ("--disable-log-requests", "has no flag --disable-log-requests", "only with --enable-log-requests"),
        ("--guided-decoding-backend xgrammar", "has no flag", "write --structured-outputs-config"),
        ("--guided-json {}", "has no flag --guided-json", "response_format"),
        ("--use-v2-block-manager", "has no flag", "the only one"),
        ("--num-lookahead-slots 4", "has no flag", "--speculative-config"),
        ("--max-seq-len-to-capture 8192", "has no flag", "--max-cudagraph-capture-size"),
        ("--task generate", "has no flag --task", "leave it out"),
        ("--disable-prefix-caching", "has no flag --disable-prefix-caching", "write --no-enable-prefix-caching"),
        ("--max-num-seq 4", "has no flag --max-num-seq", "did you mean --max-num-seqs"),
        ("--tensor-parallel 2", "has no flag --tensor-parallel", "did you mean --tensor-parallel-size"),
        ("--frobnicate-all 2", "has no flag --frobnicate-all", "leave it out"),
        ("-z 2", "has no flag -z", "leave it out"),
        ("--tensor-parallel-size two", "takes a whole number, not two", "digits"),
        ("--tensor-parallel-size 2.0", "takes a whole number, not 2.0", "digits"),
        ("--tensor-parallel-size", "needs a value", "--tensor-parallel-size VALUE"),
        ("--tensor-parallel-size=", "needs a value", "--tensor-parallel-size VALUE"),
        ("--tensor-parallel-size --enforce-eager", "needs a value", "VALUE"),
        ("--gpu-memory-utilization high", "takes a number, not high", "point"),
        ("--max-model-len 1.5K", "takes a whole number, not 1.5K", "32k"),
        ("--max-model-len long", "takes a whole number, not long", "32k"),
        ("--max-num-batched-tokens auto", "takes a whole number, not auto", "32k"),
        ("--mm-encoder-tp-mode date", "does not take date", "one of: data, weights"),
        ("--moe-backend fast", "does not take fast", "auto, deep_gemm"),
        ("-O7", "does not take 7", "0, 1, 2, 3"),
        ("--enforce-eager=true", "takes no value", "--enforce-eager alone"),
        ("--enforce-eager.x 1", "takes no value", "--enforce-eager alone"),
        ("--port.x 1", "is no JSON and takes no keys", "--port VALUE"),
        ("--limit-mm-per-prompt image=2", "takes JSON", "quote it"),
        ('--structured-outputs-config {"guided":1}', "knows no key guided", "backend, disable_any_whitespace"),
        ("--structured-outputs-config.guided 1", "knows no key guided", "backend, disable_any_whitespace"),
        ("--enforce-eager /models/qwen", "/models/qwen belongs to no flag", "--model"),
        ("--api-key secret-key", "shows the key to everybody", "serving.api_key_file"),
    ],
)
async def test_what_vllm_refuses(line: str, message: str, remedy: str, tmp_path: Path) -> None:
    problem = await one(line, tmp_path)
    assert message in problem.message
    assert remedy in problem.remedy
    assert problem.fatal


async def test_a_secret_is_not_repeated(tmp_path: Path) -> None:
    problem = await one("--api-key secret-key", tmp_path)
    assert "secret-key" not in problem.message + problem.remedy


async def test_what_is_only_unwise_is_no_failure(tmp_path: Path) -> None:
    assert not (await one("--trust-remote-code", tmp_path)).fatal


async def test_what_is_without_effect_is_no_failure(tmp_path: Path) -> None:
    problem = await one("--disable-cascade-attn", tmp_path, "0.33.0")
    assert not problem.fatal
    assert "leave it out" in problem.remedy
    assert check_flags(["--disable-cascade-attn"], await facts(tmp_path / "older", "0.24.0")) == []


async def test_a_flag_that_came_back(tmp_path: Path) -> None:
    assert check_flags(["--disable-prefix-caching"], await facts(tmp_path, "0.33.0")) == []


async def test_a_queue_limit_where_vllm_has_none(tmp_path: Path) -> None:
    line = ["--max-num-queued-reqs", "64"]
    assert "0.29 has" in check_flags(line, await facts(tmp_path / "old", "0.24.0"))[0].remedy
    assert check_flags(line, await facts(tmp_path / "new", options=("--max-num-queued-reqs",))) == []


async def test_sizes_within_json(tmp_path: Path) -> None:
    known = await facts(tmp_path)
    assert check_flags(["--limit-mm-per-prompt", '{"image": 4k, "other": [1G]}'], known) == []
    assert len(check_flags(["--limit-mm-per-prompt", '{"image": 4q}'], known)) == 1


async def test_several_problems_are_all_told(tmp_path: Path) -> None:
    problems = check_flags(["--swap-space", "4", "--dtype", "int3", "--port", "80"], await facts(tmp_path))
    assert [each.flag for each in problems] == ["--swap-space", "--dtype"]


async def test_a_vllm_that_did_not_tell_its_flags_is_no_reason_to_refuse(tmp_path: Path) -> None:
    python = write_vllm(tmp_path / "site")
    (tmp_path / "site" / "vllm" / "entrypoints" / "launchers" / "cli_args.py").unlink()
    (problem,) = check_flags(["--model", "x"], await vllm_facts(python, tmp_path / "cache"))
    assert not problem.fatal


def test_replacements_are_not_themselves_gone() -> None:
    written = {name: re.findall(r"--[a-z][a-z-]+", text) for name, text in REPLACED.items()}
    gone = {name: [each for each in flags if each in REPLACED] for name, flags in written.items()}
    assert {name: flags for name, flags in gone.items() if flags} == {}
