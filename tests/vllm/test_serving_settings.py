"""``[serving]`` against real vLLM: the environment it names, and a server that others run.

Needs ``.vllm``, an environment with vLLM (``make test-vllm`` makes it), and a small checkpoint: ../shared/mini-model
or, where that is not beside the project, a folder named by ``DOCMILL_TEST_MODEL``.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from storage.embedded.state import free_port

pytestmark = pytest.mark.vllm

PROJECT = Path(__file__).parents[2]
PYTHON = PROJECT / ".vllm" / "bin" / "python"
START_SECONDS = 420


@pytest.fixture(scope="module")
def model() -> Path:
    named = os.environ.get("DOCMILL_TEST_MODEL")
    folder = Path(named) if named else PROJECT.parent / "shared" / "mini-model" / "model"
    assert (folder / "config.json").is_file(), f"no checkpoint at {folder}: name one with DOCMILL_TEST_MODEL"
    return folder


@pytest.fixture(scope="module")
def base_url(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A vLLM server over the checkpoint."""
    assert PYTHON.is_file(), "no environment with vLLM in .vllm: make test-vllm"
    port = free_port()
    log = tmp_path_factory.mktemp("vllm") / "server.log"
    environment = os.environ | {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
    }
    command = [PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", model, "--served-model-name", "forms"]
    command += ["--max-model-len", "2048", "--enforce-eager", "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(url):
            assert server.poll() is None and time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(1)
        yield url
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait(30)


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).is_success
    except httpx.HTTPError:
        return False


def checked(tmp_path: Path, **variables: str) -> dict[str, dict[str, str]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("DOCMILL_", "PREFECT_"))}
    done = subprocess.run(
        [sys.executable, "-m", "console", "config", "check", "--json"],
        env=kept | {"DOCMILL_DATA_DIR": str(tmp_path)} | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout, done.stderr
    return {row["what"]: row for row in json.loads(done.stdout)}


def test_the_environment_is_asked_for_its_version(tmp_path: Path) -> None:
    found = checked(tmp_path, DOCMILL_SERVING_PYTHON=str(PYTHON))["vllm"]
    asked = subprocess.run(
        [PYTHON, "-c", "import vllm; print(vllm.__version__)"], capture_output=True, text=True, timeout=180
    )
    assert found["state"] == "ok"
    assert found["found"].split()[1].split("+")[0] == asked.stdout.split()[-1].split("+")[0]


def test_an_environment_without_vllm_is_named(tmp_path: Path) -> None:
    found = checked(tmp_path, DOCMILL_SERVING_PYTHON=sys.executable)["vllm"]
    assert found["state"] == "failed" and "serving.python" in found["remedy"]


def test_a_server_says_what_it_serves(tmp_path: Path, base_url: str) -> None:
    found = checked(tmp_path, DOCMILL_SERVING_BASE_URLS=json.dumps([base_url]))[f"model server {base_url}"]
    assert (found["state"], found["found"]) == ("ok", "serves forms")


def test_a_server_that_is_not_there_is_a_failed_check(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    found = checked(tmp_path, DOCMILL_SERVING_BASE_URLS=json.dumps([url]))[f"model server {url}"]
    assert found["state"] == "failed" and "serving.base_urls" in found["remedy"]
