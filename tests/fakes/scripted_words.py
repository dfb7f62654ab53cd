"""What the scripted model server (scripted_vllm.py) writes and says: log lines, metrics, answers."""

from __future__ import annotations

import itertools
import os
import sys
import time
from typing import Any

START_FAILURES = {
    "oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total of 23 GiB",
    "kv_cache": "ValueError: To serve at least one request with the model's max seq len (8192), (0.44 GiB KV cache is "
    "needed, which is larger than the available KV cache memory (0.1 GiB). Based on the available memory, the "
    "estimated maximum model length is 1872. Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.",
    "no_kv_cache": "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
    "flag": "api_server.py: error: unrecognized arguments: --swap-space 4",
    "architecture": "ValueError: Model architectures ['FooForCausalLM'] are not supported for now.",
    "nccl": "RuntimeError: NCCL error: unhandled system error",
    "port": "OSError: [Errno 98] Address already in use",
    "missing": "OSError: /models/nothing does not appear to have a file named config.json.",
    "crash": "RuntimeError: something odd",
}


def log(text: str, level: str = "INFO", name: str = "APIServer") -> None:
    when = time.strftime("%m-%d %H:%M:%S")
    print(f"({name} pid={os.getpid()}) {level} {when} [scripted.py:1] {text}", file=sys.stderr, flush=True)


def start_lines(version: str, model: str, kv_cache_tokens: int) -> list[str]:
    """The log of a start; a line that begins with a carriage return is a progress bar of tqdm."""
    size = f"GPU KV cache size: {kv_cache_tokens:,} tokens"
    concurrency = "Maximum concurrency for 8,192 tokens per request: 42.38x"
    return [
        f"Starting to load model {model}...",
        "Loading safetensors checkpoint shards:   0% Completed | 0/2 [00:00<?, ?it/s]",
        "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<00:00,  1.66it/s]",
        "Loading safetensors checkpoint shards: 100% Completed | 2/2 [00:01<00:00,  1.49it/s]",
        "Loading weights took 1.41 seconds",
        "Model loading took 15.63 GiB memory and 1.801203 seconds",
        "Dynamo bytecode transform time: 7.56 s",
        "torch.compile took 24.61 s in total",
        "Available KV cache memory: 105.9 GiB",
        *([size, concurrency] if version == "0.24" else [f"{size}, {concurrency}"]),
        "\rCapturing CUDA graphs (mixed prefill-decode, PIECEWISE):  50%|#####     | 1/2 [00:00<00:00, 14.2it/s]\r",
        "Graph capturing finished in 3 secs, took 0.55 GiB",
        "init engine (profile, create kv cache, warmup model) took 38.06 s (compilation: 24.61 s)",
    ]


def metrics_text(version: str, name: str, state: dict[str, int]) -> str:
    """``/metrics`` of that version, for an engine in that state."""
    label = f'engine="0",model_name="{name}"'
    families = [
        ("num_requests_running", "gauge", "", state["running"]),
        ("num_requests_waiting", "gauge", "", state["waiting"]),
        ("num_requests_waiting_by_reason", "gauge", ',reason="capacity"', state["waiting"]),
        ("kv_cache_usage_perc", "gauge", "", min(1.0, state["running"] / 64)),
        ("prefix_cache_queries_total", "counter", "", state["prompt"]),
        ("prefix_cache_hits_total", "counter", "", 0),
        ("num_preemptions_total", "counter", "", 0),
        ("prompt_tokens_total", "counter", "", state["prompt"]),
        ("generation_tokens_total", "counter", "", state["generated"]),
        ("request_success_total", "counter", ',finished_reason="stop"', state["succeeded"]),
        ("request_success_total", "counter", ',finished_reason="abort"', 0),
    ]
    lines = []
    for family, kind, more, value in families:
        line = f"vllm:{family}{{{label}{more}}} {float(value)}"
        declared = f"# TYPE vllm:{family} {kind}"
        lines += [line] if declared in lines else [declared, line]
    if version != "0.24":
        lines.append("# TYPE vllm:admission_rejections_total counter")
        lines.append(f'vllm:admission_rejections_total{{model_name="{name}",reason="max_num_queued_reqs"}} 0.0')
    return "\n".join(lines) + "\n"


def instance(schema: dict[str, Any], root: dict[str, Any] | None = None) -> Any:
    """The smallest value that a JSON schema allows, every property given."""
    root = schema if root is None else root
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return instance(target, root)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return instance(schema[key][0], root)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: instance(each, root) for name, each in schema.get("properties", {}).items()}
    if kind == "array":
        return [instance(schema.get("items", {}), root) for _ in range(schema.get("minItems", 0))]
    plain = {"integer": schema.get("minimum", 0), "number": schema.get("minimum", 0.5), "boolean": True, "null": None}
    return plain.get(kind, "x" * max(1, schema.get("minLength", 1)))


def pieces(text: str, count: int) -> list[str]:
    """The text in so many pieces."""
    size, extra = divmod(len(text), count)
    cuts = [0]
    for number in range(count):
        cuts.append(cuts[-1] + size + (number < extra))
    return [text[start:end] for start, end in itertools.pairwise(cuts)]
