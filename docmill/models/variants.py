"""Quantised variants of a model: other checkpoints of it, and its own made smaller as vLLM loads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from docmill.failures import ConfigurationError
from docmill.models.catalog_files import catalog
from docmill.models.hub_quantization import method_family
from docmill.models.naming import load_profile
from docmill.models.profile import ModelProfile, Quantization

ONLINE = {
    "fp8": Quantization(method="fp8", bits=8, online=True),
    "bitsandbytes": Quantization(method="bitsandbytes", bits=4, group=64, group_bytes=4, online=True),
}
"""Methods that vLLM applies to 16-bit checkpoints while it loads them."""


def profile_to_serve(
    name_or_path: str, models: Mapping[str, Path] | None = None, quantization: str | None = None
) -> ModelProfile:
    """The model as it is served: :func:`load_profile`, then the weights that ``serving.quantization`` asks for.

    Args:
        name_or_path: see :func:`load_profile`.
        models: name → folder with the model's files; that of a quantised checkpoint stands there under its own name.
        quantization: see :func:`quantized`.

    Raises:
        ModelNotFound, ModelIncomplete, NotAVisionModel, UnsupportedModel: see :func:`load_profile`.
        ConfigurationError: see :func:`quantized`.
    """
    profile = load_profile(name_or_path, models)
    smaller = quantized(profile, quantization)
    if smaller.name != profile.name and smaller.name in (models or {}):
        return load_profile(smaller.name, models)
    return smaller


def variants_of(profile: ModelProfile) -> list[ModelProfile]:
    """The other checkpoints of the same model that the catalog knows, the 16-bit one among them."""
    origin = profile.base or profile.name
    family = [each for each in catalog().values() if origin in (each.name, each.base)]
    return [each for each in family if each.name != profile.name]


def quantized(profile: ModelProfile, method: str | None) -> ModelProfile:
    """The model with smaller weights: as it is, another checkpoint of the catalog, or made smaller as it is loaded.

    Args:
        profile: the model.
        method: ``awq``, ``gptq-int4``, ``gptq-int8``, ``fp8``, ``mxfp8``…; None for the profile as it is.

    Raises:
        ConfigurationError: there is no such checkpoint of it, and vLLM cannot make one as it loads.
    """
    if method is None:
        return profile
    wanted = method.lower().replace("_", "-").removesuffix("-marlin")
    own = profile.quantization
    if own is not None and wanted in (own.method.lower().replace("_", "-"), method_family(own)[0]):
        return profile
    if profile.folder is not None and own is None and wanted in ONLINE:
        return profile.model_copy(update={"quantization": ONLINE[wanted]})
    origin = profile.base or profile.name
    others = variants_of(profile)
    for each in others:
        kind = each.name.removeprefix(f"{origin}-")
        if each.base is not None and (kind == wanted or kind.startswith(f"{wanted}-")):
            return each
    if own is None and wanted in ONLINE:
        return profile.model_copy(update={"quantization": ONLINE[wanted]})
    known = [each.name.removeprefix(f"{origin}-") for each in others if each.base is not None]
    told = [*known, *(each for each in ONLINE if each not in known)] if own is None else known
    raise ConfigurationError(
        f"no {method} of {profile.name} is known",
        remedy=(f"there are {', '.join(told)}; " if told else "leave it out; ")
        + "another of vLLM's own methods goes into serving.extra_arguments, as --quantization",
    )
