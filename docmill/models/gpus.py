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
    """

    name: str
    memory_bytes: int
    fp8: bool = True
    fp4: bool = False

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
_NOTATION = re.compile(r"(?:(\d+)\s*[x×*]\s*)?(.+)", re.IGNORECASE)
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*G(?:i?B)?", re.IGNORECASE)
USABLE_SHARE = 0.985
"""Of a size that is given in GB: what torch sees of it."""


def _plain(name: str) -> str:
    return re.sub(r"[^A-Z0-9]", "", name.upper().removeprefix("NVIDIA"))


def parse_gpus(text: str) -> tuple[int, Gpu]:
    """``2xH200``, ``4xA100-80GB``, ``1x24GB`` or ``H100``: how many of which.

    Raises:
        ConfigurationError: not such a text; the message names what there is.
    """
    match = _NOTATION.fullmatch(text.strip())
    count, kind = (int(match[1] or 1), match[2].strip()) if match else (0, "")
    if not 1 <= count <= 1024:
        raise ConfigurationError(f"{text!r} names no GPUs", remedy="write 2xH200, 4xA100-80GB or 1x24GB")
    found = next((name for name in _KNOWN if _plain(name) == _plain(kind)), None)
    if found is not None:
        gib, fp8, fp4 = _KNOWN[found]
        return count, Gpu(found, round(gib * GIB), fp8, fp4)
    if size := _SIZE.fullmatch(kind):
        return count, Gpu(kind.upper(), round(float(size[1]) * USABLE_SHARE * GIB))
    raise ConfigurationError(
        f"no GPU {kind!r} is known", remedy=f"write its memory, such as {count}x48GB, or one of {', '.join(_KNOWN)}"
    )
