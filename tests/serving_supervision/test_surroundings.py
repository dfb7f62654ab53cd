import io
from pathlib import Path
from uuid import uuid4

import pytest
from PIL import Image

from docmill.launching import Launch
from docmill.settings import ServingSettings
from serving.supervision.surroundings import SERVER_ID, can_sleep, listens_on_loopback, server_environment
from serving.supervision.timings import SupervisorTimings
from serving.supervision.tiny_image import tiny_image_uri, tiny_png

INHERITED = {
    "PATH": "/bin", "HOME": "/root", "CUDA_VISIBLE_DEVICES": "1", "NCCL_P2P_DISABLE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "4",
    "LD_LIBRARY_PATH": "/lib", "LD_PRELOAD": "x.so", "OMP_NUM_THREADS": "2", "LC_ALL": "C",
    "PYTHONPATH": "/app", "PYTHONHOME": "/app", "VIRTUAL_ENV": "/app",
    "DOCMILL_DATABASE_URL": "s", "PREFECT_API_KEY": "s",
    "AWS_SECRET_ACCESS_KEY": "s", "MINIO_ROOT_PASSWORD": "s", "PGPASSWORD": "s", "DATABASE_URL": "s", "HF_TOKEN": "s",
    "OPENAI_API_KEY": "s", "VLLM_API_KEY": "s", "VLLM_SERVER_DEV_MODE": "1", "http_proxy": "http://proxy",
}  # fmt: skip


def launch(*command, **more):
    values = {
        "environment": {},
        "base_url": "http://h:1",
        "served_name": "m",
        "log_path": Path("log"),
        "config_hash": "",
    }
    return Launch(command=command, **{**values, **more})


def test_what_is_inherited():
    server_id = uuid4()
    found = server_environment(launch("vllm"), server_id, INHERITED)
    assert "s" not in found.values()
    kept = {
        "PATH", "HOME", "CUDA_VISIBLE_DEVICES", "NCCL_P2P_DISABLE", "VLLM_CPU_KVCACHE_SPACE", "LD_LIBRARY_PATH",
        "LD_PRELOAD", "OMP_NUM_THREADS", "LC_ALL",
    }  # fmt: skip
    assert set(found) & set(INHERITED) == kept
    assert found[SERVER_ID] == str(server_id)
    assert found["HF_HUB_OFFLINE"] == found["TRANSFORMERS_OFFLINE"] == found["VLLM_NO_USAGE_STATS"] == "1"


def test_the_launch_comes_on_top_but_not_online():
    given = {"PYTHONPATH": "/tmp/site", "OMP_NUM_THREADS": "8", "HF_HUB_OFFLINE": "0"}
    found = server_environment(launch("vllm", environment=given, api_key="k"), uuid4(), INHERITED)
    assert (found["PYTHONPATH"], found["OMP_NUM_THREADS"], found["HF_HUB_OFFLINE"]) == ("/tmp/site", "8", "1")
    assert found["VLLM_API_KEY"] == "k"


@pytest.mark.parametrize(
    ("flags", "loopback"),
    [
        (("--host", "127.0.0.1"), True),
        (("--host=::1",), True),
        (("--host", "localhost"), True),
        (("--host", "127.8.8.8"), True),
        (("--host", "0.0.0.0"), False),
        (("--host", "10.0.0.7"), False),
        (("--host", "gpu1"), False),
        ((), False),
        (("--host",), False),
    ],
)
def test_sleep_is_for_loopback(flags, loopback):
    command = ("python", "-m", "vllm", *flags)
    assert listens_on_loopback(command) is loopback
    assert can_sleep(launch(*command, can_sleep=True)) is loopback
    assert not can_sleep(launch(*command))
    found = server_environment(launch(*command, can_sleep=True), uuid4(), INHERITED)
    assert ("VLLM_SERVER_DEV_MODE" in found) is loopback


def test_the_tiny_picture_is_one():
    with Image.open(io.BytesIO(tiny_png())) as picture:
        picture.load()
        assert (picture.size, picture.mode) == ((64, 64), "RGB")
        assert len(picture.getcolors()) == 2
    assert len(tiny_image_uri()) < 1000


def test_timings_come_from_the_settings():
    settings = ServingSettings(hang_seconds=7, restart_budget=2, idle_stop_seconds=9)
    timings = SupervisorTimings.of(settings)
    assert (timings.hang_seconds, timings.restart_budget, timings.idle_stop_seconds) == (7, 2, 9)
    assert SupervisorTimings.of(ServingSettings()) == SupervisorTimings()
