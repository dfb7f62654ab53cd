"""A stand-in for ``serving.python``: an interpreter of an environment in which vLLM's server is the scripted one.

Asked for facts it runs the program beside a small package called vllm (vllm_package.py); asked for
``-m vllm.entrypoints.openai.api_server`` it is scripted_vllm.py, which a script tells what to do.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from vllm_package import write_interpreter, write_vllm

SERVER = Path(__file__).with_name("scripted_vllm.py")
MORE_FLAGS = ("--quantization",)


class ScriptedPython:
    """An interpreter, and the script of the servers that it starts.

    Args:
        folder: where all of it lies.
        vllm: what is installed there, as write_vllm takes it.

    Attributes:
        path: for ``serving.python``.
    """

    def __init__(self, folder: Path, **vllm: Any) -> None:
        real = write_vllm(folder / "environment", options=MORE_FLAGS, **vllm)
        self._script = folder / "script.json"
        self.path = write_interpreter(
            folder / "bin" / "python",
            f'if [ "$1" = -m ]; then\n'
            f'  SCRIPTED_VLLM="{self._script}" exec "{sys.executable}" -S "{SERVER}" "$@"\n'
            f"fi\n"
            f'exec "{real}" "$@"',
        )
        self.script()

    def script(self, *entries: dict[str, Any]) -> None:
        """What the servers started from now on do, one entry a start; the last one repeats."""
        self._script.write_text(json.dumps(list(entries) or [{}]), encoding="utf-8")
        Path(f"{self._script}.starts").unlink(missing_ok=True)

    @property
    def starts(self) -> int:
        """How many servers were started since the script was written."""
        try:
            return len(Path(f"{self._script}.starts").read_text(encoding="utf-8").split())
        except FileNotFoundError:
            return 0
