"""What a model server sees of the environment: what it needs, and no secret of docmill's."""

from __future__ import annotations

import getpass
import ipaddress
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

import psutil

from docmill.launching import Launch

SERVER_ID = "DOCMILL_SERVER_ID"
SUPERVISOR = "DOCMILL_SUPERVISOR"
"""``PID:START`` of the process that supervises the server (start in seconds since the epoch)."""

SCRATCH = "docmill-"
LONGEST_SCRATCH = 40
"""Characters: a socket's whole path may have 107, vLLM's names have 36."""

_KEPT = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "LD_LIBRARY_PATH",
    "LD_PRELOAD", "HF_HOME", "HF_HUB_CACHE", "HF_MODULES_CACHE", "HF_ASSETS_CACHE", "TRANSFORMERS_CACHE", "MAX_JOBS",
    "CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "TOKENIZERS_PARALLELISM",
    "NUMEXPR_MAX_THREADS",
})  # fmt: skip
_KEPT_PREFIXES = (
    "LC_", "XDG_", "NCCL_", "CUDA_", "CUDNN_", "CUBLAS_", "NVIDIA_", "VLLM_", "TORCH", "PYTORCH_", "TRITON_", "OMP_",
    "KMP_", "MKL_", "OPENBLAS_", "GOMP_", "FLASHINFER_", "GLOO_", "UCX_", "FI_", "IBV_", "HIP_", "ROCR_", "HSA_",
    "MALLOC_", "TCMALLOC_", "DG_", "DEEP_GEMM_", "NVTE_",
)  # fmt: skip
_DROPPED = frozenset({"VLLM_API_KEY", "VLLM_SERVER_DEV_MODE", "VLLM_PLUGINS"})
_SET = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONFAULTHANDLER": "1",  # stacks on SIGABRT, which is how a hang is looked into
    "PYTHONUNBUFFERED": "1",  # what it prints is in the log when it is killed
    # setproctitle writes the title of vLLM's processes over their environment, which is how orphans are known
    "SPT_NOENV": "1",
}


def bound_host(command: tuple[str, ...]) -> str:
    """The address after ``--host``; empty where there is none, and vLLM listens on every one."""
    host = ""
    for flag, value in zip(command, [*command[1:], ""], strict=True):
        if flag == "--host":
            host = value
        elif flag.startswith("--host="):
            host = flag.removeprefix("--host=")
    return "127.0.0.1" if host == "localhost" else host


def listens_on_loopback(command: tuple[str, ...]) -> bool:
    """Whether the command line binds a loopback address."""
    try:
        return ipaddress.ip_address(bound_host(command)).is_loopback
    except ValueError:
        return False


def can_sleep(launch: Launch) -> bool:
    """Whether the server can be put to sleep.

    Sleep needs vLLM's development endpoints. Its API key guards only ``/v1``, so they are had on loopback alone.
    """
    return launch.can_sleep and listens_on_loopback(launch.command)


def make_scratch(server_id: UUID, inherited: Mapping[str, str]) -> Path:
    """A new folder for a server's temporary files and sockets, which vLLM leaves behind; its user's alone."""
    where = inherited.get("TMPDIR") or tempfile.gettempdir()
    if len(where) > LONGEST_SCRATCH:
        where = "/tmp"
    return Path(tempfile.mkdtemp(prefix=f"{SCRATCH}{str(server_id)[:8]}-", dir=where))


def remove_scratch(server_id: UUID) -> None:
    """Remove what :func:`make_scratch` made for a server of which nothing runs any more."""
    for where in {tempfile.gettempdir(), "/tmp"}:
        for folder in Path(where).glob(f"{SCRATCH}{str(server_id)[:8]}-*"):
            shutil.rmtree(folder, ignore_errors=True)


def _compile_cache(inherited: Mapping[str, str]) -> str:
    """Where torch keeps compiled kernels unless it is told otherwise: among the temporary files, which go."""
    user = re.sub(r'[\\/:*?"<>|]', "_", getpass.getuser())
    return str(Path(inherited.get("TMPDIR") or tempfile.gettempdir()) / f"torchinductor_{user}")


def server_environment(
    launch: Launch, server_id: UUID, inherited: Mapping[str, str], scratch: Path | None = None
) -> dict[str, str]:
    """The variables of the server's process.

    Its temporary files go to ``scratch``, where there is one; what is worth keeping of them stays where it was.

    Only what a list allows is inherited (docmill's, Prefect's, the database's and the store's secrets are not);
    ``launch.environment`` comes on top, then what docmill insists on.
    """
    kept = {
        name: value
        for name, value in inherited.items()
        if (name in _KEPT or name.startswith(_KEPT_PREFIXES)) and name not in _DROPPED
    }
    supervisor = psutil.Process()
    marks = {SERVER_ID: str(server_id), SUPERVISOR: f"{os.getpid()}:{supervisor.create_time():.2f}"}
    apart: dict[str, str] = {}
    if scratch is not None:
        kept.setdefault("VLLM_RPC_BASE_PATH", str(scratch))
        kept.setdefault("TORCHINDUCTOR_CACHE_DIR", _compile_cache(inherited))
        apart = {"TMPDIR": str(scratch)}
    environment = kept | apart | launch.environment | _SET | marks
    environment.pop("VLLM_SERVER_DEV_MODE", None)
    if can_sleep(launch):
        environment["VLLM_SERVER_DEV_MODE"] = "1"
    if launch.api_key:
        environment["VLLM_API_KEY"] = launch.api_key
    return environment
