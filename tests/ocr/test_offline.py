"""Reading a page asks nobody outside and leaves nothing in the user's folder."""

import os
import subprocess
import sys
from pathlib import Path

READ = """
import socket, sys
asked = []
socket.getaddrinfo = lambda *a, **k: asked.append(a[0]) or (_ for _ in ()).throw(OSError("no network"))
from PIL import Image, ImageDraw, ImageFont
from serving.ocr.reader import read_text
page = Image.new("RGB", (900, 400), "white")
ImageDraw.Draw(page).text((60, 60), "Total 12.50", "black", ImageFont.load_default(48))
assert "12.50" in read_text(page).text
assert not asked, asked
assert sys.modules.get("openvino_telemetry") is None
"""


def test_no_name_is_looked_up_and_nothing_is_left_behind(tmp_path: Path) -> None:
    home, packages = tmp_path / "home", tmp_path / "packages"
    home.mkdir()
    packages.mkdir()
    # where the package is installed all the same, it must not be taken
    (packages / "openvino_telemetry.py").write_text("raise SystemExit('telemetry was imported')")
    done = subprocess.run(
        [sys.executable, "-c", READ],
        env=os.environ | {"HOME": str(home), "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert list(home.iterdir()) == []
