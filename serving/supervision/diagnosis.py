"""Why a server died, from its exit status and its last log lines.

The only place that reads text to decide: vLLM gives its exit status 1 for everything, and 0 when its engine died. The
phrases were read from the sources of vLLM 0.24 and 0.32 and of torch, some from the logs of real starts; what is not
recognised is a plain crash.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from docmill.failures import ConfigurationError, DocmillError
from docmill.model_failures import (
    ModelIncomplete,
    ModelNotFound,
    NotEnoughGpuMemory,
    ParallelSizeImpossible,
    PortTaken,
    ServerOutOfMemory,
    UnsupportedFlag,
    UnsupportedModel,
    VllmMissing,
)


class Cure(StrEnum):
    """What a restart may do about it."""

    RESTART = "restart"  # it may well go away
    ONCE = "once"  # it may; but not if the next start ends in the same way
    NONE = "none"  # somebody must change something


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a server died or was killed.

    Attributes:
        code: as in the error table, or ``crash``, ``hang``, ``start_timeout``, ``out_of_host_memory``, ``nccl``…
        message: one sentence, without page contents.
        remedy: what to do about it.
        cure: whether a restart helps.
        evidence: the log line that says so.
    """

    code: str
    message: str
    remedy: str
    cure: Cure
    evidence: str | None = None

    @classmethod
    def of(cls, error: DocmillError, cure: Cure = Cure.NONE) -> Diagnosis:
        """From an error."""
        return cls(error.code, error.message, error.remedy, cure)


def _rule(
    pattern: str, error: type[DocmillError] | str, message: str, cure: Cure, remedy: str | None = None
) -> tuple[re.Pattern[str], str, str, str, Cure]:
    code = error if isinstance(error, str) else error.code
    default = "" if isinstance(error, str) else error.default_remedy
    return re.compile(pattern, re.IGNORECASE), code, message, default if remedy is None else remedy, cure


_LOWER_CONTEXT = (
    "lower serving.max_model_len, raise serving.gpu_memory_utilization, choose a quantised profile, or use more GPUs; "
    "docmill plan says what fits"
)
_RULES = (
    _rule(
        r"estimated maximum model length|larger than the available KV cache memory"
        r"|larger than the maximum number of tokens",
        NotEnoughGpuMemory, "the KV cache is too small for serving.max_model_len", Cure.NONE, _LOWER_CONTEXT,
    ),
    _rule(
        r"No available memory for the cache blocks", NotEnoughGpuMemory,
        "the weights leave no memory for the KV cache", Cure.NONE, _LOWER_CONTEXT,
    ),
    _rule(
        r"Free memory on device .* (?:is )?less than", NotEnoughGpuMemory,
        "others hold memory of the GPU, so vLLM does not start", Cure.ONCE,
        "see who holds it (nvidia-smi), or lower serving.gpu_memory_utilization",
    ),
    _rule(
        r"CUDA out of memory|OutOfMemoryError|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED"
        r"|cudaErrorMemoryAllocation|HIP out of memory|NVML_ERROR_MEMORY|CUDA_ERROR_OUT_OF_MEMORY",
        ServerOutOfMemory, "the GPU's memory ran out", Cure.ONCE,
    ),
    _rule(
        r"requested memory for kv", "out_of_host_memory", "the host has too little free memory for the KV cache",
        Cure.ONCE, "lower serving.cpu_kv_cache_bytes, or free memory on the host",
    ),
    _rule(
        r"Not enough allowed NUMA nodes", ConfigurationError,
        "vLLM on a CPU wants a NUMA node for each part of a divided model", Cure.NONE,
        "lower serving.tensor_parallel_size to 1, or name the cores of each part: VLLM_CPU_OMP_THREADS_BIND=0-3|4-7",
    ),
    _rule(
        r"Cannot allocate memory|MemoryError|DefaultCPUAllocator: can't allocate", "out_of_host_memory",
        "the host's memory ran out", Cure.ONCE, "free memory on the host, or use a smaller model or KV cache",
    ),
    _rule(
        r"No space left on device", "no_space", "a disk or /dev/shm is full", Cure.ONCE,
        "free space; in a container give /dev/shm more (--shm-size or --ipc=host)",
    ),
    _rule(r"address already in use", PortTaken, "something else listens on the server's port", Cure.NONE),
    _rule(
        r"error: unrecognized arguments|error: argument |error: the following arguments are required|invalid choice:",
        UnsupportedFlag, "vLLM does not take its command line", Cure.NONE,
    ),
    _rule(
        r"attention heads .*must be divisible by|must be divisible by tensor.parallel size|is not divisible by"
        r"|not divisible by the tensor", ParallelSizeImpossible,
        "the model cannot be divided by the tensor-parallel size", Cure.NONE,
    ),
    _rule(
        r"Model architectures .* (?:are|is) not supported|does not recognize this architecture"
        r"|has no vLLM implementation|Model architectures .* failed to be inspected", UnsupportedModel,
        "the installed vLLM does not know the model's architecture", Cure.NONE,
        "install a version that does: docmill serve --install; docmill plan --list says which",
    ),
    _rule(
        r"SafetensorError|incomplete metadata, file not fully covered|HeaderTooLarge|MetadataIncompleteBuffer",
        ModelIncomplete, "a file of the model is damaged or cut off", Cure.NONE,
    ),
    _rule(
        r"Cannot find any model weights|is missing a file|not initialized from checkpoint"
        r"|does not appear to have a file named|Weight files referenced in index but missing"
        r"|Can't load (?:image processor|tokenizer|feature extractor|the configuration)",
        ModelIncomplete, "a file of the model is missing", Cure.NONE,
    ),
    _rule(
        r"Repo id must be in the form|is not a local folder|Invalid repository ID or local directory"
        r"|LocalEntryNotFoundError|outgoing traffic has been disabled"
        r"|FileNotFoundError: .*(?:config\.json|safetensors)",
        ModelNotFound, "the model's files are not there", Cure.NONE,
    ),
    _rule(r"No module named '?vllm'?", VllmMissing, "the interpreter has no vLLM", Cure.NONE),
    _rule(
        r"NVIDIA driver on your system is too old|CUDA driver version is insufficient", "driver",
        "the NVIDIA driver is too old for this vLLM", Cure.NONE, "update the driver, or install an older vLLM",
    ),
    _rule(
        r"Failed to infer device type|No CUDA GPUs are available|CUDA-capable device\(s\) is/are busy"
        r"|invalid device ordinal",
        "no_gpu", "vLLM sees no usable GPU", Cure.NONE, "check the driver and CUDA_VISIBLE_DEVICES: docmill preflight",
    ),
    _rule(
        r"NCCL error|ncclSystemError|ncclUnhandledCudaError|ncclInternalError|ncclRemoteError|NCCL watchdog"
        r"|NCCL WARN .*error",
        "nccl", "the GPUs could not talk to each other (NCCL)", Cure.ONCE,
        "see docmill preflight; NCCL_DEBUG=INFO says more, NCCL_P2P_DISABLE=1 and NCCL_IB_DISABLE=1 take slower ways",
    ),
    _rule(
        r"CUDA error: (?:an illegal memory access|unspecified launch failure|device-side assert|misaligned address)"
        r"|cudaErrorIllegalAddress|uncorrectable ECC|GPU is lost|fallen off the bus", "gpu_fault",
        "the GPU reported a fault", Cure.RESTART, "if it comes again see dmesg for Xid errors; docmill preflight",
    ),
    _rule(
        r"pydantic_core\._pydantic_core\.ValidationError: \d+ validation errors? for \w*Config", ConfigurationError,
        "vLLM refuses its configuration", Cure.NONE, "see the last log lines, and: docmill preflight",
    ),
    # Last: it follows on every other cause, and stands alone where the engine was killed.
    _rule(
        r"EngineDeadError", "engine_died", "the engine's process died", Cure.RESTART,
        "see the last log lines; where they say nothing, see dmesg for the out-of-memory killer",
    ),
)  # fmt: skip

CODES = frozenset(code for _, code, _, _, _ in _RULES) | {
    "crash", "hang", "killed", "start_timeout", "stuck_process", "wake_failed",
}  # fmt: skip
"""Every code that a restart or a failed row may have, besides those of the errors of a start."""


def _manner(exit_code: int | None) -> str:
    if exit_code is None:
        return "it was killed together with its guard"
    if exit_code < 0:
        try:
            return f"it was ended by {signal.Signals(-exit_code).name}"
        except ValueError:
            return f"it was ended by signal {-exit_code}"
    return f"exit status {exit_code}"


def diagnose(exit_code: int | None, log_tail: Sequence[str], *, ready: bool) -> Diagnosis:
    """Why it died.

    Args:
        exit_code: negative: the signal that killed it; None: unknown.
        log_tail: its last lines, oldest first.
        ready: whether it had been ready before.
    """
    when = "while it worked" if ready else "while it started"
    for pattern, code, message, remedy, cure in _RULES:
        evidence = next((line for line in log_tail if pattern.search(line)), None)
        if evidence is not None:
            # What can only be said at a start is no reason to give up a server that had been up with the same settings.
            said = f"{message} ({when}, {_manner(exit_code)})"
            return Diagnosis(code, said, remedy, Cure.RESTART if ready else cure, evidence)
    if exit_code == -signal.SIGKILL:
        return Diagnosis(
            "killed", f"the server was killed {when} (SIGKILL: by the kernel for want of memory, or by somebody)",
            "see dmesg for the out-of-memory killer; give the host more memory or use a smaller model",
            Cure.RESTART if ready else Cure.ONCE,
        )  # fmt: skip
    return Diagnosis("crash", f"the server ended {when} ({_manner(exit_code)})", "see the last log lines", Cure.RESTART)
