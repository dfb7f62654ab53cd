"""The flags of vLLM's server, compiled from profile, settings and GPUs.

Never a secret among them: the API key goes by the environment.
"""

from __future__ import annotations

import json
import re
from typing import Literal

from docmill.models.gpus import Gpu
from docmill.models.memory import batch_defaults
from docmill.models.profile import ModelProfile
from docmill.settings import ServingSettings

STRUCTURED_OUTPUTS = {"backend": "xgrammar", "disable_any_whitespace": True}
"""Without the second, a schema lets a model write blanks for ever; vLLM takes it with a named backend alone."""
QUEUE_LIMIT_SINCE = (0, 29)
_CPU_SEQUENCES = 128


def vllm_arguments(
    profile: ModelProfile,
    *,
    settings: ServingSettings,
    model: str,
    served_name: str,
    tensor_parallel_size: int,
    host: str,
    port: int,
    max_model_len: int | None = None,
    platform: Literal["cuda", "cpu"] = "cuda",
    version: str = "0.24.0",
    gpu: Gpu | None = None,
) -> tuple[str, ...]:
    """Everything behind ``-m vllm.entrypoints.openai.api_server``.

    Args:
        profile: the model.
        settings: ``[serving]``; its extra_arguments come last and so win.
        model: folder or hub id.
        served_name: what requests call it.
        tensor_parallel_size: GPUs of this server.
        host: address to listen on.
        port: to listen on.
        max_model_len: context in tokens; by default the settings', then the profile's.
        platform: of the installed vLLM. On a CPU graphs are not captured: that starts sooner, and costs speed only
            where one request is worked on at a time.
        version: of the installed vLLM.
        gpu: the kind of GPU, for vLLM's own limit of requests.
    """
    release = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    length = max_model_len or settings.max_model_len or profile.max_model_len
    flags: list[str] = [
        "--model", model, "--served-model-name", served_name, "--host", host, "--port", str(port),
        "--tensor-parallel-size", str(tensor_parallel_size), "--max-model-len", str(length),
    ]  # fmt: skip
    if platform == "cuda":
        flags += ["--gpu-memory-utilization", f"{settings.gpu_memory_utilization:g}", "--enable-sleep-mode"]
    else:
        flags += ["--dtype", "bfloat16", "--enforce-eager"]
    sequences = settings.max_num_seqs
    if settings.max_queued_requests and release >= QUEUE_LIMIT_SINCE:
        # The flag bounds all requests in flight, those that are worked on among them.
        sequences = sequences or (_CPU_SEQUENCES if platform == "cpu" else batch_defaults(gpu)[1] if gpu else 256)
        flags += ["--max-num-queued-reqs", str(sequences + settings.max_queued_requests)]
    if sequences:
        flags += ["--max-num-seqs", str(sequences)]
    # A checkpoint that says its method in config.json gets no flag: with one, vLLM would take the plain kernels of the
    # method even where it has faster ones for that checkpoint.
    if profile.quantization is not None and profile.quantization.online:
        flags += ["--quantization", profile.quantization.method]
    if profile.expert_parallel and tensor_parallel_size > 1:
        flags.append("--enable-expert-parallel")
    if profile.encoder_data_parallel:
        flags += ["--mm-encoder-tp-mode", "data"]
    flags += [
        "--limit-mm-per-prompt", json.dumps({"image": profile.images, "video": 0}),
        "--structured-outputs-config", json.dumps(STRUCTURED_OUTPUTS),
    ]  # fmt: skip
    return (*flags, *profile.arguments, *settings.extra_arguments)
