"""The steps of an installation: programs run in the new environment, their output in ``install.log`` beside it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from email.parser import Parser
from pathlib import Path

import httpx

from docmill.failures import ConfigurationError
from serving.vllm.facts import VllmFacts, vllm_facts
from serving.vllm.plain_environment import plain_environment

PYTHONS = ((3, 11), (3, 14))
DEFAULT_INDEX = "https://pypi.org/simple/"
LOG = "install.log"
PROBE_SECONDS = 15.0
IMPORT_SECONDS = 300.0
_TAIL = 5
_PLACES = frozenset({"index-url", "extra-index-url", "find-links"})
_UV_PLACES = frozenset({"UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS"})


class StepFailed(Exception):
    """A program ended with an error; it never leaves the installation."""

    def __init__(self, what: str, log: Path, tail: list[str], index: str | None) -> None:
        super().__init__(what)
        self.what, self.log, self.tail, self.index = what, log, tail, index

    def explained(self, wanted: str) -> ConfigurationError:
        """Why: an index that does not answer, or what the installer said last."""
        detail = {"said": self.tail, "log": str(self.log)}
        unreachable = _unreachable(self.index)
        if unreachable is not None:
            return ConfigurationError(
                f"{wanted} cannot be installed: the package index {unreachable} does not answer",
                remedy="check the network and proxy, or set PIP_INDEX_URL (with uv: UV_DEFAULT_INDEX) to one that does",
                detail=detail,
            )
        return ConfigurationError(
            f"{wanted} cannot be installed: {self.what} failed" + (f": {self.tail[-1]}" if self.tail else ""),
            remedy=f"see {self.log}; another version may be to be had: --version",
            detail=detail,
        )


def _unreachable(index: str | None) -> str | None:
    """The index without credentials where it does not answer; None where it does."""
    url = index or DEFAULT_INDEX
    if url.startswith("file:"):
        return None
    try:
        httpx.get(url, timeout=PROBE_SECONDS, follow_redirects=True)
    except httpx.HTTPError:
        return str(httpx.URL(url).copy_with(username=None, password=None))
    except httpx.InvalidURL:
        return "(its URL is none)"
    return None


class Steps:
    """Runs the steps of one installation.

    Args:
        folder: the environment's.
        say: is told what is going on.
        uv: the program uv; None: Python's own venv and pip.
    """

    def __init__(self, folder: Path, say: Callable[[str], None], uv: str | None = None) -> None:
        self.folder, self.say = folder, say
        self.uv = uv if uv is not None else shutil.which("uv")
        self.python = folder / "bin" / "python"
        self.log = folder / LOG
        self._environment = plain_environment(os.environ, offline=False)
        self._pip_index: str | None = None

    def make_environment(self) -> None:
        """The empty environment, with this interpreter's Python.

        Raises:
            ConfigurationError: a Python that vLLM does not run on, or one that cannot make environments.
        """
        low, high = PYTHONS
        if not low <= sys.version_info[:2] <= high:
            raise ConfigurationError(
                f"vLLM does not run on Python {sys.version_info[0]}.{sys.version_info[1]}",
                remedy=f"run docmill with Python {low[0]}.{low[1]} to {high[0]}.{high[1]}",
            )
        self.say(f"making {self.folder} with {'uv' if self.uv else 'venv and pip'}")
        made = [self.uv, "venv", "--allow-existing", "--seed", "--python", sys.executable] if self.uv else None
        try:
            self._run("making the environment", [*(made or [sys.executable, "-m", "venv"]), str(self.folder)])
        except StepFailed as failed:
            raise ConfigurationError(
                f"{sys.executable} cannot make a virtual environment",
                remedy="install uv, or the system's venv package (Debian: python3-venv)",
                detail={"said": failed.tail, "log": str(self.log)},
            ) from failed
        self._choose_installer()

    def _choose_installer(self) -> None:
        """Use pip where pip is set up with indexes and uv is not: uv does not read pip's configuration."""
        told = subprocess.run(
            [str(self.python), "-m", "pip", "config", "list"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, env=self._environment, check=False,
        ).stdout  # fmt: skip
        places = {}
        for line in told.splitlines():
            key, _, value = line.partition("=")
            places[key.rpartition(".")[2]] = value.strip("'\"")
        self._pip_index = places.get("index-url")
        if self.uv and places.keys() & _PLACES and not _UV_PLACES & os.environ.keys():
            self.say("pip is set up with indexes of its own, which uv does not read: installing with pip")
            self.uv = None

    def install(self, *requirements: str, dependencies: bool = True, extra_index: str | None = None) -> None:
        """Install requirements (lines as in a requirements file, markers allowed).

        Raises:
            StepFailed: not to be had, or in conflict.
        """
        listed = self.folder / "requirements.txt"
        listed.write_text("\n".join(requirements) + "\n", encoding="utf-8")
        if self.uv:
            command = [self.uv, "pip", "install", "--python", str(self.python)]
        else:
            command = [str(self.python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
        command += ["-r", str(listed)]
        command += [] if dependencies else ["--no-deps"]
        command += ["--extra-index-url", extra_index] if extra_index else []
        self._run(f"installing {requirements[0]}", command, index=extra_index or self._index())

    def requirements(self, distribution: str) -> list[str]:
        """What an installed distribution requires, without its extras."""
        text = (self._metadata(distribution) / "METADATA").read_text(encoding="utf-8")
        wanted = Parser().parsestr(text, headersonly=True).get_all("Requires-Dist") or []
        return [line for line in wanted if "extra ==" not in line]

    def installed_version(self, distribution: str) -> str | None:
        """Its version; None where it is not installed."""
        folders = list(self._folders(distribution))
        return folders[0].name.removesuffix(".dist-info").partition("-")[2] if folders else None

    def imports(self, module: str) -> bool:
        """Whether the environment can import it."""
        try:
            self._run(f"importing {module}", [str(self.python), "-c", f"import {module}"], seconds=IMPORT_SECONDS)
        except StepFailed:
            return False
        return True

    def add_startup_file(self, program: Path) -> None:
        """Have Python run a copy of the program whenever it starts in the environment."""
        shutil.copyfile(program, self._packages() / "sitecustomize.py")

    def facts(self) -> VllmFacts:
        """What the new vLLM says of itself.

        Raises:
            VllmMissing: it does not import.
        """
        return asyncio.run(vllm_facts(self.python, self.folder / "facts", deadline_seconds=IMPORT_SECONDS))

    def _index(self) -> str | None:
        if not self.uv:
            return self._pip_index
        return self._environment.get("UV_DEFAULT_INDEX") or self._environment.get("UV_INDEX_URL")

    def _packages(self) -> Path:
        return next(self.folder.glob("lib/python3*/site-packages"))

    def _folders(self, distribution: str) -> Iterator[Path]:
        yield from self._packages().glob(f"{distribution.replace('-', '_')}-*.dist-info")

    def _metadata(self, distribution: str) -> Path:
        return next(self._folders(distribution))

    def _run(self, what: str, command: list[str], *, seconds: float | None = None, index: str | None = None) -> None:
        with self.log.open("ab") as log:
            begun = log.tell()
            try:
                ended = subprocess.run(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                    env=self._environment, timeout=seconds, check=False,
                )  # fmt: skip
            except OSError as error:
                raise StepFailed(f"{what} ({error.strerror})", self.log, [], index) from error
            except subprocess.TimeoutExpired as error:
                raise StepFailed(f"{what} (no end within {seconds:.0f} s)", self.log, [], index) from error
        if ended.returncode:
            said = self.log.read_bytes()[begun:].decode(errors="replace").splitlines()
            raise StepFailed(what, self.log, [line for line in said if line.strip()][-_TAIL:], index)
