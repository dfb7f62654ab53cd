"""vLLM's own environment: made, found, and recognised when it was left half made.

vLLM and Prefect cannot share one (fastapi), so an environment lies in a folder of its own, by default
``DATA_DIR/vllm/KIND-VERSION``. A marker file, written last, says that it is complete; one without it is begun anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from docmill.failures import ConfigurationError
from docmill.model_failures import VllmMissing
from docmill.settings import Settings
from serving.vllm.facts import release_of
from serving.vllm.recipes import DEFAULT_VERSIONS, NEEDED_BYTES, SUPPORTED, Kind, install
from serving.vllm.steps import Steps

MARKER = "docmill-vllm.json"
_VERSION = re.compile(r"\d+\.\d+\.\d+(\.?(post|rc|dev)\d+)?")


@dataclass(frozen=True, slots=True)
class InstalledEnvironment:
    """A complete environment.

    Attributes:
        folder: where it lies.
        kind: ``cuda`` or ``cpu``.
        version: of vLLM.
        python: its interpreter.
        packages: distribution → version of the main ones.
        completed_at: seconds since the epoch.
    """

    folder: Path
    kind: str
    version: str
    python: Path
    packages: dict[str, str]
    completed_at: float


def default_folder(data_dir: Path, kind: Kind, version: str | None = None) -> Path:
    """Where ``docmill serve --install`` puts it."""
    return data_dir / "vllm" / f"{kind}-{version or DEFAULT_VERSIONS[kind]}"


def install_vllm(kind: Kind, folder: Path, version: str | None, say: Callable[[str], None]) -> Path:
    """Make an environment with vLLM and return its interpreter; one that is complete is left as it is.

    Takes minutes and downloads 1 GB (cpu) to 5 GB (cuda). An environment that was left half made is begun anew.

    Args:
        kind: ``cuda`` for NVIDIA GPUs, ``cpu`` for trying things out.
        folder: where to; made where missing.
        version: of vLLM, such as ``0.24.0``; None: the default of that kind.
        say: is told each step.

    Raises:
        ConfigurationError: a version that docmill does not know, too little space, a folder that holds something else,
            no suitable Python, an index that does not answer or lacks a package.
        VllmMissing: everything was installed but vLLM does not import.
    """
    version = version or DEFAULT_VERSIONS[kind]
    folder = folder.expanduser().absolute()
    _check_version(version)
    there = environment_at(folder)
    if there is not None and (there.kind, there.version) == (kind, version):
        say(f"vLLM {version} ({kind}) is installed in {folder}")
        return there.python
    if there is not None:
        raise ConfigurationError(
            f"{folder} holds vLLM {there.version} ({there.kind})", remedy="choose another folder with --into"
        )
    _check_space(folder, kind)
    with _alone(folder):
        return _install(kind, folder, version, say)


def _install(kind: Kind, folder: Path, version: str, say: Callable[[str], None]) -> Path:
    _clear(folder, say)
    folder.mkdir(parents=True, exist_ok=True)
    # a virtual environment cannot be moved (its scripts name it), so the marker tells whole from half
    (folder / f"{MARKER}.begun").write_text(json.dumps({"kind": kind, "version": version}), encoding="utf-8")
    steps = Steps(folder, say)
    packages = install(kind, version, steps)
    python = folder / "bin" / "python"
    done = InstalledEnvironment(folder, kind, version, python, packages, time.time())
    held = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(done).items()}
    part = folder / f"{MARKER}.part"
    part.write_text(json.dumps(held, indent=2), encoding="utf-8")
    part.replace(folder / MARKER)
    (folder / f"{MARKER}.begun").unlink(missing_ok=True)
    say(f"vLLM {version} ({kind}) is installed in {folder}")
    return python


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep a second installation out of the folder; the lock goes with the process."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_name(f".{folder.name}.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigurationError(
                f"vLLM is just being installed into {folder}", remedy="wait for it, or choose another folder"
            ) from error
        yield


def environment_at(folder: Path) -> InstalledEnvironment | None:
    """The complete environment in that folder, if there is one."""
    try:
        held = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        python = folder / "bin" / "python"
        if not python.exists():
            return None
        return InstalledEnvironment(
            folder, held["kind"], held["version"], python, dict(held["packages"]), float(held["completed_at"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def installed_environments(data_dir: Path) -> list[InstalledEnvironment]:
    """The complete ones under the data folder, newest first."""
    found = [environment_at(place.parent) for place in (data_dir / "vllm").glob(f"*/{MARKER}")]
    return sorted((each for each in found if each is not None), key=lambda each: each.completed_at, reverse=True)


def vllm_python(settings: Settings) -> Path:
    """The interpreter of vLLM's environment: ``serving.python``, else the newest that docmill installed.

    Raises:
        VllmMissing: neither is there.
    """
    chosen = settings.serving.python
    if chosen is not None:
        chosen = chosen.expanduser().absolute()
        if not chosen.exists():
            raise VllmMissing(
                f"serving.python names {chosen}, which is not there",
                remedy="correct it, or unset it and make an environment: docmill serve --install cuda (or cpu)",
            )
        return chosen
    installed = installed_environments(settings.data_dir)
    if not installed:
        raise VllmMissing("no environment with vLLM: serving.python is not set and none was installed")
    return installed[0].python


def _check_version(version: str) -> None:
    low, high = SUPPORTED
    release = release_of(version)
    if not low <= release <= high or not _VERSION.fullmatch(version):
        raise ConfigurationError(
            f"vLLM {version} is not supported",
            remedy=f"choose one from {low[0]}.{low[1]}.0 to {high[0]}.{high[1]}.x, such as {DEFAULT_VERSIONS['cuda']}",
        )


def _clear(folder: Path, say: Callable[[str], None]) -> None:
    """Empty a folder that an installation of ours left half made; refuse one that holds anything else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file", remedy="choose another folder with --into")
    if not any(folder.iterdir()):
        return
    if not (folder / f"{MARKER}.begun").exists() and not (folder / MARKER).exists():
        raise ConfigurationError(f"{folder} holds other files", remedy="choose an empty folder with --into")
    say(f"{folder} was left half made: beginning anew")
    shutil.rmtree(folder)


def _check_space(folder: Path, kind: Literal["cuda", "cpu"]) -> None:
    held = folder
    while not held.exists():
        held = held.parent
    free, needed = shutil.disk_usage(held).free, NEEDED_BYTES[kind]
    if free < needed:
        raise ConfigurationError(
            f"{held} has {free / 2**30:.1f} GiB free; vLLM ({kind}) needs {needed / 2**30:.0f}",
            remedy="free some space, or choose a folder on another disk with --into",
        )
