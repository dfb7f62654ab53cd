"""A "server" whose offspring is hard to get rid of. Writes all pids to the FIFO that it is given, then waits.

Usage: ``nasty_server.py FIFO [--exit CODE]``; with --exit it ends by itself once the FIFO was read.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

STUBBORN = (
    "import signal, os\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.write(1, b'.')\nwhile True: signal.pause()"
)


def stubborn(**options):
    """A process that ignores SIGTERM; returns once it does."""
    process = subprocess.Popen([sys.executable, "-S", "-c", STUBBORN], stdout=subprocess.PIPE, **options)
    process.stdout.read(1)
    return process.pid


def detached(env):
    """The pid of one whose parent is gone, in a session of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.write(writing, str(stubborn(env=env, start_new_session=True)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(reading, 32))


pids = [os.getpid(), stubborn(), stubborn(start_new_session=True), detached(None), detached({})]
Path(sys.argv[1]).write_text(" ".join(map(str, pids)))
if "--exit" in sys.argv:
    os._exit(int(sys.argv[3]))
while True:
    signal.pause()
