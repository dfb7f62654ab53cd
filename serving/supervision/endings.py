"""How a stretch of a server's life ends: the supervisor's own signals, which never leave it."""

from __future__ import annotations

from serving.supervision.diagnosis import Diagnosis
from serving.supervision.server_process import ProcessEnd


class StopAsked(Exception):
    """Somebody asked for the end, or nobody needs the server; ``why`` is for the row."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class ServerDied(Exception):
    """The process ended by itself."""

    def __init__(self, end: ProcessEnd) -> None:
        super().__init__(str(end.exit_code))
        self.end = end


class Trouble(Exception):
    """The process runs but must go.

    Args:
        diagnosis: why.
        hung: whether its stacks are worth a look first.
    """

    def __init__(self, diagnosis: Diagnosis, *, hung: bool = False) -> None:
        super().__init__(diagnosis.code)
        self.diagnosis = diagnosis
        self.hung = hung
