import re
from pathlib import Path

import pytest
from scripted_words import START_FAILURES

from serving.supervision.diagnosis import CODES, Cure, diagnose

LINES = [
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.", "server_out_of_memory", Cure.ONCE),
    ("RuntimeError: CUDA error: out of memory", "server_out_of_memory", Cure.ONCE),
    ("RuntimeError: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)", "server_out_of_memory", Cure.ONCE),
    ("RuntimeError: CUDA driver error: CUDA_ERROR_OUT_OF_MEMORY", "server_out_of_memory", Cure.ONCE),
    (START_FAILURES["kv_cache"], "not_enough_gpu_memory", Cure.NONE),
    (START_FAILURES["no_kv_cache"], "not_enough_gpu_memory", Cure.NONE),
    (
        "ValueError: Free memory on device cuda:0 (10.2/139.8 GiB) on startup is less than desired GPU memory "
        "utilization (0.9, 125.8 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        "not_enough_gpu_memory", Cure.ONCE,
    ),
    ("torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:3384", "nccl", Cure.ONCE),
    ("ncclSystemError: System call (e.g. socket, malloc) or external library call failed", "nccl", Cure.ONCE),
    ("OSError: [Errno 98] Address already in use", "port_taken", Cure.NONE),
    ("OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address already in use",
     "port_taken", Cure.NONE),
    ("api_server.py: error: unrecognized arguments: --swap-space", "unsupported_flag", Cure.NONE),
    ("api_server.py: error: argument --dtype: invalid choice: 'int3'", "unsupported_flag", Cure.NONE),
    ("ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).",
     "parallel_size_impossible", Cure.NONE),
    ("ValueError: Model architectures ['Foo'] are not supported for now.", "unsupported_model", Cure.NONE),
    ("safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered",
     "model_incomplete", Cure.NONE),
    ("RuntimeError: Cannot find any model weights with `/m/7b`", "model_incomplete", Cure.NONE),
    ("OSError: /m/7b does not appear to have a file named preprocessor_config.json.", "model_incomplete", Cure.NONE),
    ("/venv/bin/python: No module named vllm", "vllm_missing", Cure.NONE),
    ("RuntimeError: Failed to infer device type", "no_gpu", Cure.NONE),
    ("RuntimeError: No CUDA GPUs are available", "no_gpu", Cure.NONE),
    ("torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "gpu_fault", Cure.RESTART),
    ("OSError: [Errno 28] No space left on device: '/dev/shm/psm_1'", "no_space", Cure.ONCE),
    ("OSError: [Errno 12] Cannot allocate memory", "out_of_host_memory", Cure.ONCE),
    ("pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig", "configuration", Cure.NONE),
    ("FileNotFoundError: Weight files referenced in index but missing: {'/m/7b/model-00003-of-00006.safetensors'}",
     "model_incomplete", Cure.NONE),
    ("OSError: Can't load image processor for '/m/7b'. If you were trying to load it from 'https://huggingface.co/models'",
     "model_incomplete", Cure.NONE),
    ("AssertionError: Not enough allowed NUMA nodes to bind threads of 2 local CPUWorkers.",
     "configuration", Cure.NONE),
    ("ValueError: Available memory on node 0 (15.3/17.1 GiB) on kv cache allocation is less than requested memory for "
     "kv (300.0 GiB). Decrease --kv-cache-memory-bytes", "out_of_host_memory", Cure.ONCE),
    ("vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above)",
     "engine_died", Cure.RESTART),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "cure"), LINES)
def test_causes_at_a_start(line, code, cure):
    noise = [
        "INFO starting",
        f"(EngineCore pid=1) ERROR {line}",
        *["RuntimeError: Engine core initialization failed."] * 99,
    ]
    found = diagnose(1, noise, ready=False)
    assert (found.code, found.cure) == (code, cure)
    assert found.remedy
    assert line in found.evidence
    assert "while it started" in found.message


@pytest.mark.parametrize(("line", "code", "cure"), LINES)
def test_a_server_that_had_worked_is_restarted(line, code, cure):
    found = diagnose(1, [line], ready=True)
    assert (found.code, found.cure) == (code, Cure.RESTART)
    assert "while it worked" in found.message


def test_plain_ends():
    assert diagnose(3, ["nothing of note"], ready=False).message == "the server ended while it started (exit status 3)"
    assert diagnose(-11, [], ready=True).message == "the server ended while it worked (it was ended by SIGSEGV)"
    assert diagnose(-64, [], ready=True).code == "crash"
    assert diagnose(None, [], ready=True).code == "crash"
    assert diagnose(-9, [], ready=True).code == "killed"


def test_every_code_is_in_the_reference():
    text = (Path(__file__).parents[2] / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(\w+)`", text)) >= CODES
