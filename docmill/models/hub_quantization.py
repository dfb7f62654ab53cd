"""How a checkpoint's matrices are stored, as its ``config.json`` says under ``quantization_config``."""

from __future__ import annotations

from typing import Any

from docmill.models.profile import Quantization

_ZERO_POINTS = frozenset({"awq", "gptq"})
"""Methods whose groups have a zero point of as many bits as a weight, besides a scale of two bytes."""


def quantization_of(config: dict[str, Any]) -> Quantization | None:
    """What ``config.json`` says; None for 16-bit weights.

    Read are AWQ, GPTQ, FP8 (whole rows or blocks), MXFP8, NVFP4 (ModelOpt), compressed-tensors and bitsandbytes; of
    others the bits, where they are named.

    Raises:
        ValueError: the method is not named.
    """
    held = config.get("quantization_config") or (config.get("text_config") or {}).get("quantization_config")
    if not held:
        return None
    method = str(held.get("quant_method", "")).lower()
    if not method:
        raise ValueError("quantization_config names no quant_method")
    told = str(held).lower()
    inner = _weights(held)
    bits = int(_first(held, "bits", "w_bit") or inner.get("num_bits") or (4 if _four(held, told) else 8))
    group = int(_first(held, "group_size", "q_group_size") or inner.get("group_size") or 0)
    if method in _ZERO_POINTS or method.removesuffix("_marlin") in _ZERO_POINTS:
        return Quantization(method=method, bits=bits, group=max(0, group), group_bytes=2 + bits / 8 if group > 0 else 0)
    if "nvfp4" in told:
        experts = bool(config.get("text_config", config).get("num_experts_per_tok"))
        return Quantization(method=method, bits=4, group=16, group_bytes=1, experts_only=experts)
    if "mxfp8" in told or "mxfp4" in told:
        return Quantization(method=method, bits=4 if "mxfp4" in told else 8, group=32, group_bytes=1)
    if block := held.get("weight_block_size"):
        return Quantization(method=method, bits=bits, group=block[0] * block[1], group_bytes=4, block=block[0])
    return Quantization(method=method, bits=bits, group=max(0, group), group_bytes=2.0 if group > 0 else 0.0)


def method_family(quantization: Quantization | None) -> tuple[str, int]:
    """By which two ways to store matrices are the same, whatever kernel reads them."""
    if quantization is None:
        return "", 16
    return quantization.method.lower().removesuffix("_marlin"), quantization.bits


def _first(held: dict[str, Any], *names: str) -> Any:
    return next((held[name] for name in names if held.get(name)), None)


def _weights(held: dict[str, Any]) -> dict[str, Any]:
    """Of compressed-tensors: what its first group of modules says of weights."""
    groups = held.get("config_groups")
    first: Any = next(iter(groups.values()), {}) if isinstance(groups, dict) else {}
    found = first.get("weights") if isinstance(first, dict) else None
    return found if isinstance(found, dict) else {}


def _four(held: dict[str, Any], told: str) -> bool:
    return bool(held.get("load_in_4bit")) or "fp4" in told
