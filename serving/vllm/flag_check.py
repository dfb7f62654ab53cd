"""Flags against the installed vLLM's own parser, before a start spends minutes to find the same."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from serving.vllm.facts import FlagFact, VllmFacts
from serving.vllm.flag_changes import REPLACED, WITHOUT_EFFECT

_SIZE = re.compile(r"\d+|\d+(\.\d+)?[kmgt]|\d+[KMGT]")
_SIZE_IN_JSON = re.compile(r"(?<=[:\[,\s])\d+(\.\d+)?[kmgtKMGT](?=[\s,\]}])")
_NUMBER_OF_ITS_OWN = re.compile(r"-\d+(\.\d*)?$|-\.\d+$")
_LONG = 60
_UNWISE = {
    "--api-key": ("shows the key to everybody on the host", "set serving.api_key_file: it goes by environment", True),
    "--trust-remote-code": ("runs code from the model's folder", "leave it out unless you have read that code", False),
    "--allowed-local-media-path": ("lets requests read files of the host", "leave it out: pages go as data", False),
}
"""Flags that vLLM takes and docmill minds: why, what to do, whether it refuses."""


@dataclass(frozen=True, slots=True)
class FlagProblem:
    """A flag that the installed vLLM would refuse (or, as a warning, will soon).

    Attributes:
        flag: as it was written.
        message: what is wrong with it.
        remedy: what to write instead.
        fatal: False for what works but is deprecated.
    """

    flag: str
    message: str
    remedy: str
    fatal: bool = True


@dataclass(frozen=True, slots=True)
class _Given:
    written: str
    name: str
    path: str | None  # of a dotted flag, behind the first dot
    values: tuple[str, ...]
    joined: bool  # --name=value


def check_flags(arguments: Sequence[str], facts: VllmFacts) -> list[FlagProblem]:
    """What the installed vLLM's server would refuse of its arguments (those behind ``-m vllm.…api_server``).

    Understands what vLLM's parser does: underscores for dashes, ``--a=b``, ``--a.b c`` for JSON, ``-O3``, short flags,
    the inverse ``--no-a``. Abbreviations (``--tensor-par 2``), which argparse would take, are refused: another version
    may resolve them otherwise.
    """
    if not facts.flags:
        return [
            FlagProblem(
                "flags", f"vLLM {facts.version} did not say which flags it has", "they go unchecked", fatal=False
            )
        ]
    by_name = {name: flag for flag in facts.flags for name in flag.names}
    problems: list[FlagProblem] = []
    for given in _given(arguments, by_name):
        problem = _problem(given, by_name, facts)
        if problem is not None:
            problems.append(problem)
    return problems


def _given(arguments: Sequence[str], by_name: dict[str, FlagFact]) -> Iterator[_Given]:
    position = 0
    while position < len(arguments):
        written = arguments[position]
        position += 1
        if not written.startswith("-") or _NUMBER_OF_ITS_OWN.match(written) or written in ("-", "--"):
            yield _Given(written, "", None, (), False)
            continue
        if written.startswith("-O") and written != "-O":
            yield _Given(written, "--optimization-level", None, (written[2:].removeprefix("="),), True)
            continue
        head, joined, value = written.partition("=")
        stem, dot, path = head.partition(".")
        name = "--" + stem[2:].replace("_", "-") if stem.startswith("--") else stem
        if joined:
            yield _Given(written, name, path if dot else None, (value,), True)
            continue
        values: list[str] = []
        flag = by_name.get(name)
        takes = "one" if dot else flag.takes if flag else "many"
        most = {"none": 0, "one": 1, "optional": 1, "many": len(arguments)}[takes]
        while position < len(arguments) and len(values) < most and _is_value(arguments[position]):
            values.append(arguments[position])
            position += 1
        yield _Given(written, name, path if dot else None, tuple(values), False)


def _is_value(text: str) -> bool:
    return not text.startswith("-") or text == "-" or " " in text or bool(_NUMBER_OF_ITS_OWN.match(text))


def _problem(given: _Given, by_name: dict[str, FlagFact], facts: VllmFacts) -> FlagProblem | None:
    vllm = f"vLLM {facts.version}"
    if not given.name:
        return FlagProblem(
            given.written, f"{_short(given.written)} belongs to no flag", "give the model with --model; quote values"
        )
    flag = by_name.get(given.name)
    if flag is None:
        return FlagProblem(given.name, f"{vllm} has no flag {given.name}", _instead(given.name, by_name))
    problem = _value_problem(given, flag)
    if problem is not None:
        return FlagProblem(given.name, f"{given.name} of {vllm} {problem[0]}", problem[1])
    if flag.deprecated or facts.release >= WITHOUT_EFFECT.get(given.name, (99, 0)):
        instead = _worded(REPLACED.get(given.name, "leave it out where you can"))
        return FlagProblem(given.name, f"{given.name} is deprecated in {vllm}", instead, fatal=False)
    if given.name in _UNWISE:
        message, remedy, fatal = _UNWISE[given.name]
        return FlagProblem(given.name, f"{given.name} {message}", remedy, fatal=fatal)
    return None


def _worded(replacement: str) -> str:
    return replacement if replacement.startswith("leave it out") else f"write {replacement} instead"


def _instead(name: str, by_name: dict[str, FlagFact]) -> str:
    if name in REPLACED:
        return _worded(REPLACED[name])
    for prefix in ("--no-", "--disable-", "--enable-"):
        # 0.33 names inverses --disable-x, earlier ones --no-enable-x
        bare = name.removeprefix(prefix)
        for other in (f"--no-enable-{bare}", f"--no-{bare}", f"--no-disable-{bare}"):
            if bare != name and other in by_name:
                return f"write {other}"
    close = difflib.get_close_matches(name, by_name, n=3, cutoff=0.75)
    return f"did you mean {' or '.join(close)}?" if close else "leave it out, or install a vLLM that has it"


def _value_problem(given: _Given, flag: FlagFact) -> tuple[str, str] | None:
    if flag.takes == "none":
        if given.joined or given.path is not None:
            return "takes no value", f"write {given.name} alone"
        return None
    if not given.values or (given.joined and given.values == ("",) and flag.kind != "text"):
        return None if flag.takes == "optional" else ("needs a value", f"write {given.name} VALUE")
    if given.path is not None:
        return _path_problem(given, flag)
    for value in given.values:
        problem = _one_value_problem(value, flag)
        if problem is not None:
            return problem
    return None


def _path_problem(given: _Given, flag: FlagFact) -> tuple[str, str] | None:
    if flag.kind not in ("json", "text", "other"):
        return "is no JSON and takes no keys", f"write {given.name} VALUE"
    key = (given.path or "").rstrip("+").split(".")[0]
    return _keys_problem((key,), flag)


def _keys_problem(keys: Sequence[str], flag: FlagFact) -> tuple[str, str] | None:
    wrong = [key for key in keys if flag.keys is not None and key not in flag.keys]
    if wrong:
        return f"knows no key {', '.join(map(_short, wrong))}", f"its keys: {', '.join(flag.keys or ())}"
    return None


def _one_value_problem(value: str, flag: FlagFact) -> tuple[str, str] | None:
    if flag.nullable and value == "None":
        return None
    if flag.choices is not None:
        # some of its types lower the case and turn dashes
        spellings = {value} if flag.kind != "other" else {value, value.lower().replace("-", "_")}
        if not spellings & set(flag.choices):
            return f"does not take {_short(value)}", f"one of: {', '.join(flag.choices)}"
        return None
    match flag.kind:
        case "integer" if not _is_whole(value):
            return f"takes a whole number, not {_short(value)}", "write digits alone"
        case "number" if not _is_number(value):
            return f"takes a number, not {_short(value)}", "write a number with a point"
        case "size" | "size_or_auto" if not _is_size(value, auto=flag.kind == "size_or_auto"):
            return (
                f"takes a whole number, not {_short(value)}",
                "write digits, or 32k (thousands) or 32K (of 1024)",
            )
        case "json":
            return _json_problem(value, flag)
    return None


def _is_whole(value: str) -> bool:
    try:
        int(value)
    except ValueError:
        return False
    return True


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _is_size(value: str, *, auto: bool) -> bool:
    return bool(_SIZE.fullmatch(value.strip())) or (auto and value.strip().lower() in ("auto", "-1"))


def _json_problem(value: str, flag: FlagFact) -> tuple[str, str] | None:
    try:
        held = json.loads(_SIZE_IN_JSON.sub("0", value))  # {"a": 80g} is allowed
    except ValueError:
        return "takes JSON, which this is not", 'quote it for the shell: \'{"key": "value"}\''
    if isinstance(held, dict):
        return _keys_problem(tuple(held), flag)
    return None


def _short(text: str) -> str:
    return text if len(text) <= _LONG else text[: _LONG - 1] + "…"
