"""The variables that programs in vLLM's environment get: none of docmill's, none that reach out."""

from __future__ import annotations

from collections.abc import Mapping

_DROPPED_PREFIXES = ("DOCMILL_", "PREFECT_", "PG", "AWS_", "MINIO_", "OPENAI_", "VLLM_API_KEY")
_DROPPED = frozenset({
    # of docmill's own environment: with them another interpreter would import from there
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "PYTHONWARNINGS",
})  # fmt: skip
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "PYTHONDONTWRITEBYTECODE": "1",
}


def plain_environment(inherited: Mapping[str, str], *, offline: bool = True) -> dict[str, str]:
    """What a subprocess in vLLM's environment inherits.

    ``PYTHONPATH`` is not handed on (it belongs to docmill's interpreter): where vLLM lies in a plain folder,
    ``serving.python`` is a script that sets it.
    """
    kept = {
        name: value
        for name, value in inherited.items()
        if name not in _DROPPED and not name.startswith(_DROPPED_PREFIXES)
    }
    return kept | OFFLINE if offline else kept
