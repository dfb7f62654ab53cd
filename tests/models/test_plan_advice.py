"""Each piece of advice, followed to the letter, fits."""

import re
from itertools import product
from typing import Any

import pytest

from docmill.models.gpus import parse_gpus
from docmill.models.naming import load_profile, profile_names
from docmill.models.planning import Plan, plan
from docmill.models.splitting import possible_sizes

NOTHING_HELPS = "GPUs with more memory"
KINDS = {  # what the advice begins with → what it changes
    "shorter": re.compile(r"a shorter context: --max-model-len (?P<length>\d+)"),
    "utilisation": re.compile(r"more of each GPU: serving\.gpu_memory_utilization = (?P<share>[\d.]+)"),
    "online": re.compile(r"smaller weights: --quantization (?P<method>fp8)"),
    "checkpoint": re.compile(r"smaller weights: (?P<name>[\w.-]+)"),
    "gpus": re.compile(r"more GPUs: (?P<count>\d+) x [^,]+"),
    "both": re.compile(r"(?P<count>\d+) x \S+ with (?P<name>[\w.-]+)"),
    "split": re.compile(r"(?P<sized>tensor parallel) \d+ on these GPUs"),
}
SIZE = re.compile(r"\btensor parallel (\d+)")


def followed(found: Plan, advice: str, *, utilization: float, asked: int | None) -> tuple[str, Plan]:
    """The advice's kind, and the plan with what it says changed and nothing else."""
    kind, match = next((kind, match) for kind, pattern in KINDS.items() if (match := pattern.match(advice)))
    says = match.groupdict()
    size = SIZE.search(advice)
    profile = load_profile(says["name"]) if "name" in says else found.profile
    return kind, plan(
        profile,
        found.gpu,
        int(says.get("count", found.gpu_count)),
        max_model_len=int(says.get("length", found.max_model_len)),
        quantization=says.get("method"),
        tensor_parallel_size=int(size[1]) if size else asked,
        utilization=float(says.get("share", utilization)),
    )


@pytest.mark.parametrize("utilization", [0.5, 0.9])
def test_what_is_advised_fits(utilization: float) -> None:
    seen = set()
    machines = [parse_gpus(text) for text in ("1x24GB", "2xT4", "4xA100-40GB", "1xH200", "8xH200")]
    everything = product(profile_names(), machines, (None, 4096, 262_144), (None, 1, 2, 8))
    for name, (count, gpu), length, asked in everything:
        profile = load_profile(name)
        if asked is not None and asked not in possible_sizes(profile):
            continue
        found = plan(profile, gpu, count, max_model_len=length, tensor_parallel_size=asked, utilization=utilization)
        for advice in found.advice:
            if advice != NOTHING_HELPS:
                kind, then = followed(found, advice, utilization=utilization, asked=asked)
                assert then.fits, (name, count, gpu.name, length, asked, advice)
                seen.add(kind)
    assert seen == set(KINDS)


@pytest.mark.parametrize(
    ("name", "gpus", "asked", "more", "advice"),
    [
        ("qwen2-vl-72b", "1xH200", None, {}, r"more GPUs: 2 x H200"),
        ("qwen2-vl-72b", "1xH200", 2, {}, r"more GPUs: 2 x H200"),
        ("qwen2-vl-72b", "1xH200", 1, {}, r"more GPUs: 2 x H200, tensor parallel 2"),
        ("qwen2-vl-72b", "1x24GB", 1, {}, r"4 x 24GB with qwen2-vl-72b-awq, tensor parallel 4"),
        ("minimax-m3", "8xH200", 1, {"utilization": 0.5}, r"smaller weights: \S+-mxfp8, tensor parallel 8 \(.*"),
        ("minimax-m3", "8xH200", 1, {"utilization": 0.5}, r"more of each GPU: .* = 0\.95, tensor parallel 8 \(.*"),
        (
            "qwen2-vl-72b-awq",
            "4xA100-40GB",
            2,
            {"utilization": 0.5, "max_model_len": 262_144},
            r"a shorter context: --max-model-len \d+, tensor parallel 4",
        ),
    ],
)
def test_a_remedy_over_another_size_than_asked_for_says_so(
    name: str, gpus: str, asked: int | None, more: dict[str, Any], advice: str
) -> None:
    count, gpu = parse_gpus(gpus)
    found = plan(load_profile(name), gpu, count, tensor_parallel_size=asked, **more)
    assert any(re.fullmatch(advice, line) for line in found.advice), found.advice
