"""From a row that failed to the error that it stands for."""

from __future__ import annotations

from collections.abc import Iterator

from docmill.failures import DocmillError
from docmill.model_failures import ServerFailed
from docmill.model_servers import ServerRecord, ServerState, StopRequest


def lost_its_supervisor(record: ServerRecord) -> bool:
    """Whether it ended because its supervisor was gone, not because the supervisor gave it up."""
    return record.state is ServerState.FAILED and record.error_code == ServerFailed.code


def may_be_started_again(record: ServerRecord) -> bool:
    """Whether one that needs an ended server may start another: nobody wanted it stopped, and it did not fail."""
    if record.state is ServerState.STOPPED:
        return record.stop_requested is StopRequest.NONE
    return lost_its_supervisor(record)


def error_of(record: ServerRecord) -> DocmillError:
    """The named error of a failed row: of its own class where there is one, else ServerFailed.

    The message is the row's first line; the rest, its last log lines among it, is in the detail.
    """
    first, _, rest = (record.message or "it failed without a word").partition("\n")
    kind = next((each for each in _errors(DocmillError) if each.code == record.error_code), ServerFailed)
    mend = kind.default_remedy if first.endswith(f" ({kind.default_remedy})") else ""
    first = first.removesuffix(f" ({mend})")
    detail = {
        "server_id": str(record.id), "code": record.error_code, "log": rest.strip(), "log_path": record.log_path,
        "restarts": record.restarts,
    }  # fmt: skip
    where = f"; its log: {record.log_path} on {record.host}" if record.log_path else ""
    remedy = f"{mend or 'mend the cause'}, then: docmill serve {record.profile}{where}"
    return kind(f"the server of {record.profile} failed: {first}", remedy=remedy, detail=detail)


def _errors(kind: type[DocmillError]) -> Iterator[type[DocmillError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _errors(each)
