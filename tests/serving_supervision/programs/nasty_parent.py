"""Supervises the nasty server and never ends. Usage: ``nasty_parent.py FIFO LOG SERVER_ID``; prints the guard's pid."""

import asyncio
import os
import sys
from pathlib import Path
from uuid import UUID

from docmill.launching import Launch
from serving.supervision.server_process import ServerProcess


async def main(fifo, log, server_id):
    program = str(Path(__file__).with_name("nasty_server.py"))
    launch = Launch((sys.executable, "-S", program, fifo), {}, "http://127.0.0.1:1", "x", Path(log), "")
    process = await ServerProcess.start(launch, UUID(server_id), inherited=os.environ, grace_seconds=0.2)
    print(process.guard_pid, flush=True)
    await process.wait()


asyncio.run(main(*sys.argv[1:]))
