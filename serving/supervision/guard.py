"""A tiny program between a supervisor and the server that it started: whatever dies, nothing is left behind.

Run as a plain file by a bare interpreter (``python -I -S guard.py --grace 5 --log FILE -- COMMAND…``), in a session of
its own. It imports nothing of docmill, so it starts in milliseconds from wherever docmill lies.

- Its standard input is a pipe that only the supervisor holds: when it ends (the supervisor ended, be it by kill -9),
  every process of the server's tree gets SIGTERM and, after the grace, SIGKILL.
- On Linux it adopts every orphan of the tree (``PR_SET_CHILD_SUBREAPER``), double-forked ones in sessions of their own
  too, and the server gets SIGKILL if the guard itself is killed (``PR_SET_PDEATHSIG``).
- When the server ends by itself, the rest of its tree is ended.
- What a killed tree could not put away goes with it: the folder for its temporary files (``--scratch``), and on Linux
  the shared memory that the tree had mapped, unless somebody else has it too.

Commands, one a line on standard input: ``stop SECONDS`` (SIGTERM to the server, after so long SIGKILL to what is left),
``dump SECONDS`` (SIGABRT to every Python process, whose fault handler then writes its stacks; after so long SIGKILL to
what is left), ``kill``. Reports, one JSON object a line on standard output: ``{"started": PID}`` or
``{"not_started": ERRNO, "what": TEXT}``, ``{"exited": CODE}`` (negative: by that signal), ``{"gone": true}`` once
nothing is left.
"""

import argparse
import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LINUX = sys.platform == "linux"
SHARED_MEMORY = "/dev/shm/"
LOOK_SECONDS = 10.0
"""Between two looks at what the tree shares: a process that is killed can no longer be asked."""


def _children_of() -> dict[int, list[int]]:
    """Every process by its parent."""
    found: dict[int, list[int]] = {}
    if LINUX:
        for name in os.listdir("/proc"):  # noqa: PTH208 - no pathlib: the guard starts in milliseconds
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    # after the name, which may hold anything: state, parent
                    found.setdefault(int(file.read().rpartition(b")")[2].split()[1]), []).append(int(name))
    else:
        listed = subprocess.run(["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
        for line in listed.splitlines():
            pid, parent = (int(part) for part in line.split())
            found.setdefault(parent, []).append(pid)
    return found


def _tree(root: int) -> list[int]:
    """Every process below the root, nearest first."""
    children, found = _children_of(), [root]
    for pid in found:
        found += [child for child in children.get(pid, ()) if child not in found]
    return found[1:]


def _is_python(pid: int) -> bool:
    try:
        return "python" in os.path.basename(os.readlink(f"/proc/{pid}/exe"))  # noqa: PTH115, PTH119
    except OSError:
        return not LINUX


def _title(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            words = file.read().replace(b"\0", b" ").decode("utf-8", "replace").split()
    except OSError:
        return "?"
    return next((word for word in words if word.startswith("VLLM::")), " ".join(words[:3]))


def _has_ended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except OSError:
        return LINUX or not _exists(pid)


def _mapped(pid: int) -> set[str]:
    """Files of shared memory that a process has mapped."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", "rb") as file:  # noqa: PTH123
        lines = (line.split(maxsplit=5) for line in file if SHARED_MEMORY.encode() in line)
        return {parts[5].decode("utf-8", "replace").rstrip("\n") for parts in lines if len(parts) == 6}
    return set()


def _put_away(paths: set[str], since: float) -> None:
    """Remove shared memory of this user that came about since then, unless a process still has it."""
    left = set()
    for path in paths:
        with contextlib.suppress(OSError):
            found = os.stat(path)  # noqa: PTH116
            if path.startswith(SHARED_MEMORY) and found.st_uid == os.getuid() and found.st_ctime >= since:
                left.add(path)
    if left:
        for name in os.listdir("/proc"):  # noqa: PTH208
            left -= _mapped(int(name)) if name.isdigit() else set()
    for path in left:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108


class Guard:
    """The server's tree, and what is done about it.

    Args:
        grace_seconds: between SIGTERM and SIGKILL where nobody says how long.
        log: descriptor of the log.
    """

    def __init__(self, grace_seconds: float, log: int) -> None:
        self.grace_seconds = grace_seconds
        self.log = log
        self.server = 0
        self.exited: int | None = None
        self.deadline: float | None = None
        self.ending = False
        self.reporting = True
        self.shared: set[str] = set()
        self.began = time.time() - 1
        self.known: set[int] = set()  # without a subreaper an orphan must be remembered from when it was none

    def start(self, command: list[str]) -> None:
        """Start the server; its output goes to the log."""
        libc = ctypes.CDLL(None, use_errno=True) if LINUX else None
        if libc is not None:
            libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        guard = os.getpid()

        def prepare() -> None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
            if libc is not None:
                libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != guard:  # it was killed before the line above
                    os._exit(1)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)

        # a core dump of a model server would be as large as its memory, hence the limit in prepare
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, preexec_fn=prepare, close_fds=True
        )
        self.server = process.pid
        process.returncode = 0  # reaped here, with everybody else

    def report(self, **facts: object) -> None:
        """Tell the supervisor, if it still listens."""
        if self.reporting:
            try:
                os.write(1, json.dumps(facts).encode() + b"\n")
            except OSError:
                self.reporting = False

    def members(self) -> list[int]:
        """Every process of the tree that still runs."""
        found = _tree(os.getpid())
        if not LINUX:
            self.known |= set(found)
            for pid in list(self.known):
                if not _exists(pid):
                    self.known.discard(pid)
            found += [pid for pid in self.known if pid not in found]
        return found

    def look(self) -> None:
        """Remember what the tree shares."""
        if LINUX:
            for pid in self.members():
                self.shared |= _mapped(pid)

    def signal(self, number: int, pids: list[int]) -> None:
        """Send a signal to each that is still there."""
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def end(self, grace_seconds: float, *, whole_tree: bool) -> None:
        """Ask the server (or every process) to end, and set when that turns into SIGKILL."""
        self.ending = True
        self.look()
        due = time.monotonic() + grace_seconds
        self.deadline = due if self.deadline is None else min(due, self.deadline)
        pids = self.members() if whole_tree or self.exited is not None else [self.server]
        self.signal(signal.SIGTERM, pids)
        self.signal(signal.SIGCONT, pids)  # a stopped process takes no other signal but SIGKILL

    def dump(self, patience_seconds: float) -> None:
        """Let every Python process write its stacks and die of it: one after another, lest they write at once.

        Those farthest from the server come first: its end would end the rest.
        """
        self.ending = True
        self.look()
        self.deadline = time.monotonic() + patience_seconds
        pids = [pid for pid in reversed(self.members()) if _is_python(pid)]
        for number, pid in enumerate(pids):
            os.write(self.log, f"\n--- docmill: stacks of process {pid} ({_title(pid)})\n".encode())
            self.signal(signal.SIGABRT, [pid])
            self.signal(signal.SIGCONT, [pid])
            left = self.deadline - time.monotonic()
            due = time.monotonic() + left / (len(pids) - number)
            while time.monotonic() < due and not _has_ended(pid):
                time.sleep(0.01)

    def reap(self) -> bool:
        """Collect what ended; whether nothing is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return LINUX or not self.members()
            if pid == 0:
                return False
            if pid == self.server and self.exited is None:
                self.exited = os.waitstatus_to_exitcode(status)
                self.report(exited=self.exited)
                self.end(self.grace_seconds, whole_tree=True)

    def obey(self, line: bytes) -> None:
        """Do what a line from the supervisor says."""
        word, *values = line.decode().split() or [""]
        if word == "stop":
            self.end(float(values[0]), whole_tree=False)
        elif word == "dump":
            self.dump(float(values[0]))
        elif word == "kill":
            self.look()
            self.ending, self.deadline = True, time.monotonic()

    def watch(self, wakeup: int) -> None:
        """Until nothing is left."""
        held, orders, looked = b"", [0], time.monotonic()
        while not self.reap():
            now = time.monotonic()
            if self.deadline is not None and now >= self.deadline:
                self.signal(signal.SIGKILL, self.members())  # and again until nothing is left: one may just fork
            if not self.ending and now >= looked + LOOK_SECONDS:
                self.look()
                looked = now
            pause = LOOK_SECONDS if LINUX and not self.ending else 0.5
            if self.deadline is not None:
                pause = min(0.5, self.deadline - now) if now < self.deadline else 0.02
                if now > self.deadline + 5:  # something is stuck in a driver: no hurry any more
                    pause = 1.0
            ready, _, _ = select.select([*orders, wakeup], [], [], pause)
            if wakeup in ready and signal.SIGTERM in os.read(wakeup, 4096):
                self.end(self.grace_seconds, whole_tree=True)
            if 0 in ready:
                data = os.read(0, 4096)
                if not data:  # the supervisor is gone
                    orders = []
                    self.end(self.grace_seconds, whole_tree=True)
                *lines, held = (held + data).split(b"\n")
                for line in lines:
                    self.obey(line)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--grace", type=float, default=5.0)
    parser.add_argument("--log", required=True)
    parser.add_argument("--scratch")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    log = os.open(options.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    guard = Guard(options.grace, log)
    try:
        guard.start(options.command)
    except (OSError, subprocess.SubprocessError) as error:
        guard.report(not_started=getattr(error, "errno", None) or 0, what=type(error).__name__)
        return
    guard.report(started=guard.server)
    guard.watch(reading)
    _put_away(guard.shared, guard.began)
    if options.scratch:
        import shutil  # not needed until now, and slow to come

        shutil.rmtree(options.scratch, ignore_errors=True)
    guard.report(gone=True)


if __name__ == "__main__":
    main()
