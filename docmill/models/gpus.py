"""GPUs by name, for plans on machines that are not at hand."""

from __future__ import annotations

import re
from dataclasses import dataclass

from docmill.failures import ConfigurationError

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Gpu:
    """One kind of GPU.

    Attributes:
        memory_bytes: all of it, as torch sees it.
        fp8, fp4: whether it computes with 8-bit and 4-bit floats.
        bf16: whether it computes with bfloat16, which the profiles' weights are in.
    """

    name: str
    memory_bytes: int
    fp8: bool = True
    fp4: bool = False
    bf16: bool = True

    @property
    def memory_gib(self) -> float:
        """In GiB."""
        return self.memory_bytes / GIB


# GiB as torch.cuda.mem_get_info gives them; H200 measured, the others from the vendors' sheets less what ECC, the
# driver and the tables of pages take.
_KNOWN: dict[str, tuple[float, bool, bool]] = {
    "H200": (139.8, True, False),
    "H100": (79.1, True, False),
    "H100-96GB": (94.5, True, False),
    "H20": (95.1, True, False),
    "GH200": (94.5, True, False),
    "B200": (178.3, True, True),
    "B300": (267.6, True, True),
    "GB200": (184.0, True, True),
    "A100-80GB": (79.1, False, False),
    "A100-40GB": (39.4, False, False),
    "A100": (79.1, False, False),
    "A40": (44.3, False, False),
    "A10": (22.1, False, False),
    "A6000": (47.4, False, False),
    "L40S": (44.4, True, False),
    "L40": (44.4, True, False),
    "L4": (22.0, True, False),
    "RTX6000-ADA": (47.4, True, False),
    "RTX-PRO-6000": (94.9, True, True),
    "RTX5090": (31.4, True, True),
    "RTX4090": (23.5, True, False),
    "RTX3090": (23.6, False, False),
    "T4": (14.6, False, False),
    "V100-32GB": (31.7, False, False),
    "V100": (15.8, False, False),
    "MI300X": (191.5, True, False),
    "MI325X": (255.5, True, False),
}
_WITHOUT_BF16 = frozenset({"T4", "V100", "V100-32GB"})
_NOTATION = re.compile(r"(?:(\d+)\s*[x×*]\s*)?(.+)", re.IGNORECASE)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*G(?:i?B)?", re.IGNORECASE)
_NAME_AND_SIZE = re.compile(r"(.*[^-_ ])[-_ ]+(\d+)\s*G(?:i?B)?", re.IGNORECASE)
USABLE_SHARE = 0.985
"""Of a size that is given in GB: what torch sees of it."""


def _plain(name: str) -> str:
    return re.sub(r"NVIDIA|AMD|GEFORCE|INSTINCT|[^A-Z0-9]", "", name.upper())


def parse_gpus(text: str) -> tuple[int, Gpu]:
    """``2xH200``, ``4xA100-80GB``, ``1x24GB`` or ``H100``: how many of which.

    Raises:
        ConfigurationError: not such a text; the message names what there is.
    """
    match = _NOTATION.fullmatch(text.strip())
    count, kind = (int(match[1] or 1), match[2].strip()) if match else (0, "")
    if not 1 <= count <= 1024:
        raise ConfigurationError(f"{text!r} names no GPUs", remedy="write 2xH200, 4xA100-80GB or 1x24GB")
    if (known := _known(kind)) is not None:
        return count, known
    if (size := _SIZE.fullmatch(kind)) and float(size[1]) >= 1:
        return count, _sized(kind.upper(), float(size[1]), None)
    if named := _NAME_AND_SIZE.fullmatch(kind):
        known = _known(named[1])
        if known is not None:
            return count, _sized(kind.upper(), float(named[2]), known)
    raise ConfigurationError(
        f"no GPU {kind!r} is known", remedy=f"write its memory, such as {count}x48GB, or one of {', '.join(_KNOWN)}"
    )


def gpu_names() -> list[str]:
    """Those that are known."""
    return list(_KNOWN)


def _known(kind: str) -> Gpu | None:
    name = next((name for name in _KNOWN if _plain(name) == _plain(kind)), None)
    if name is None:
        return None
    gib, fp8, fp4 = _KNOWN[name]
    return Gpu(name, round(gib * GIB), fp8, fp4, name not in _WITHOUT_BF16)


def _sized(name: str, gigabytes: float, like: Gpu | None) -> Gpu:
    """A GPU with that much memory; ``H100-80GB`` is the known one where the sizes are the same but for the rounding."""
    memory = round(gigabytes * USABLE_SHARE * GIB)
    if like is None:
        return Gpu(name, memory)
    if abs(memory - like.memory_bytes) < 0.05 * like.memory_bytes:
        return like
    return Gpu(name, memory, like.fp8, like.fp4, like.bf16)
