"""Supervisors that outlive whoever started them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import BaseModel, SecretStr

from docmill.failures import ConfigurationError
from docmill.settings import CONFIG_VARIABLE, Settings, config_file
from flows.launches import LOGS, StartOptions
from flows.prefect_environment import MARK as STACK_MARK
from storage.embedded.processes import log_tail, spawn

MARK = "_DOCMILL_MODEL_SERVERS"
"""Stands in the environment of detached supervisors, with the data folder as its value."""


class DetachedSupervisor:
    """One that was started by this process.

    Attributes:
        log: where it writes.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self.log = log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ended(self) -> str | None:
        """Its last words, where it has ended; None while it runs."""
        return None if self._process.poll() is None else log_tail(self.log, lines=30)


def start_supervisor(
    settings: Settings, profile: str, server_ids: Sequence[UUID], options: StartOptions | None = None
) -> DetachedSupervisor:
    """Start a supervisor for these rows, in a session of its own.

    Raises:
        ConfigurationError: it cannot be started.
    """
    options = options or StartOptions()
    command = [sys.executable, "-m", "flows.supervision", "--profile", profile]
    for server_id in server_ids:
        command += ["--server-id", str(server_id)]
    if options.tensor_parallel_size is not None:
        command += ["--tensor-parallel-size", str(options.tensor_parallel_size)]
    if options.gpus:
        command += ["--gpus", ",".join(map(str, options.gpus))]
    if options.port is not None:
        command += ["--port", str(options.port)]
    if options.max_model_len is not None:
        command += ["--max-model-len", str(options.max_model_len)]
    log = settings.data_dir / LOGS / f"supervisor-{str(server_ids[0])[:8]}.log"
    try:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
        process = spawn(command, log=log, environment=environment_of(settings), directory=settings.data_dir)
    except OSError as error:
        raise ConfigurationError(
            f"the supervisor could not be started: {error.strerror}", remedy="check data_dir and its space"
        ) from error
    return DetachedSupervisor(process, log)


def environment_of(settings: Settings) -> dict[str, str]:
    """The variables of this process, with the settings that are in force here among them; paths are absolute.

    Prefect's are left out: the supervisor belongs to no flow run and to no local stack.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_") and name != STACK_MARK}
    path = config_file()
    if path is not None:
        kept[CONFIG_VARIABLE] = str(path.resolve())
    kept["DOCMILL_DATA_DIR"] = str(settings.data_dir.expanduser().absolute())
    kept[MARK] = kept["DOCMILL_DATA_DIR"]
    kept["PYTHONUNBUFFERED"] = "1"
    for group in type(settings).model_fields:
        held = getattr(settings, group)
        if isinstance(held, BaseModel):
            kept |= {f"DOCMILL_{group}_{name}".upper(): value for name, value in _carried(group, held).items()}
    return kept


def _carried(group: str, held: BaseModel) -> dict[str, str]:
    """What is set in a group: all of what servers need, and every path, which would lead elsewhere from there."""
    given = {name: value for name in held.model_fields_set if (value := getattr(held, name)) is not None}
    return {
        name: _written(value)
        for name, value in given.items()
        if group in ("serving", "database") or isinstance(value, Path)
    }


def _written(value: Any) -> str:
    match value:
        case SecretStr():
            return value.get_secret_value()
        case Path():
            return str(value.expanduser().absolute())
        case tuple() | dict():
            return json.dumps(value, default=_written)
        case _:
            return str(value)
