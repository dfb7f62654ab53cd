"""Copied as ``sitecustomize.py`` into a vLLM environment on a CPU whose torchvision was built for CUDA.

Such a torchvision fails to import beside a CPU build of torch: its compiled operators do not load, and its Python part
registers fake kernels for operators that nobody declared. Declaring their schemas just before torchvision is imported
is enough; reading pages with a vision-language model calls none of them.
"""

from __future__ import annotations

import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

OPERATORS = ("nms", "qnms")
SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class BeforeTorchvision:
    """Finds nothing itself; declares the operators when torchvision is first looked for, then steps aside."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As the import system asks."""
        if name == "torchvision":
            sys.meta_path.remove(self)
            import torch  # type: ignore[import-not-found, unused-ignore]

            declared: Any = torch.library.Library("torchvision", "FRAGMENT")
            for operator in OPERATORS:
                declared.define(operator + SIGNATURE)
            self.declared = declared  # operators live as long as their library
            _KEPT.append(self)
        return None


_KEPT: list[BeforeTorchvision] = []

if __name__ == "sitecustomize":
    sys.meta_path.insert(0, BeforeTorchvision())
