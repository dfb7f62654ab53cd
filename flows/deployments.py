"""Registering the deployments of ``prefect.yaml`` with a Prefect server, where they are not there as they are now."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import httpx
import yaml

from docmill.document_types import builtin_folder
from docmill.failures import ConfigurationError, ServerNotReady

DEPLOY_SECONDS = 180.0
VERSION_VARIABLE = "_DOCMILL_DEPLOYMENT_VERSION"
"""prefect.yaml takes the deployments' version from it."""
SERVING = ("keep-warm/keep-warm", "serving-health/serving-health")
"""Deployments that run on the GPU hosts."""


def prefect_file() -> Path:
    """The ``prefect.yaml`` that comes with docmill (in a checkout and in an installed wheel)."""
    return builtin_folder().parent / "prefect.yaml"


def deployment_version() -> str:
    """Changes with prefect.yaml and with the flows' code, which decides the parameters that the UI asks for."""
    digest = hashlib.sha256(prefect_file().read_bytes())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def register_deployments(
    api_url: str, pool: str, *, serving_pool: str | None = None, api_key: str | None = None
) -> bool:
    """Register them unless they are there in this version already, which is found out in a few milliseconds.

    Args:
        api_url: ``http://host:port/api``.
        pool: work pool that is to run them.
        serving_pool: the one of the GPU hosts, which runs the deployments of model servers; by default the same.
        api_key: of the server, if it wants one.

    Returns:
        Whether anything was registered.

    Raises:
        ConfigurationError: Prefect refuses the file; the detail has its last words.
        ServerNotReady: the server does not answer.
    """
    version = deployment_version()
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        with httpx.Client(base_url=f"{api_url}/", headers=headers, timeout=15) as client:
            there = [client.get(f"deployments/name/{name}") for name in _names()]
            pools = [serving_pool or pool if name in SERVING else pool for name in _names()]
            if all(_stands(answer, version, wanted) for answer, wanted in zip(there, pools, strict=True)):
                return False
            switched = _schedules(there)
            _deploy(api_url, pool, version, api_key)
            _switch_back(client, switched)
            if serving_pool is not None and serving_pool != pool:
                _move(client, serving_pool)
    except httpx.HTTPError as error:
        raise ServerNotReady(
            f"the Prefect server at {api_url} does not answer", remedy="docmill up, or check prefect.api_url"
        ) from error
    return True


def _stands(answer: httpx.Response, version: str, pool: str) -> bool:
    """Whether the deployment is there in this version, for that pool."""
    if not answer.is_success:
        return False
    found = answer.json()
    return bool(found.get("version") == version and found.get("work_pool_name") == pool)


def _move(client: httpx.Client, pool: str) -> None:
    """Let the GPU hosts' work pool run the model servers; it is made where it is missing."""
    if client.get(f"work_pools/{pool}").status_code == 404:
        client.post("work_pools/", json={"name": pool, "type": "process"}).raise_for_status()
    for name in SERVING:
        found = client.get(f"deployments/name/{name}").raise_for_status().json()
        client.patch(f"deployments/{found['id']}", json={"work_pool_name": pool}).raise_for_status()


def _deploy(api_url: str, pool: str, version: str, api_key: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {
        "PREFECT_API_URL": api_url,
        "PREFECT_HOME": os.environ.get("PREFECT_HOME", str(Path.home() / ".prefect")),
        "PREFECT_CLI_PROMPT": "false",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        VERSION_VARIABLE: version,
    }
    if api_key is not None:
        environment["PREFECT_API_KEY"] = api_key
    command = [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all", "--pool", pool]
    command += ["--prefect-file", str(prefect_file())]
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment,
            cwd=prefect_file().parent, timeout=DEPLOY_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise ServerNotReady("registering the deployments took too long", remedy="docmill config check") from error
    if answer.returncode != 0:
        raise ConfigurationError(
            f"Prefect refused the deployments of {prefect_file()}",
            remedy="see the detail, or run: prefect deploy --all",
            detail={"prefect": (answer.stdout + answer.stderr)[-2000:]},
        )


def _names() -> list[str]:
    found = yaml.safe_load(prefect_file().read_text(encoding="utf-8"))["deployments"]
    return [f"{each['entrypoint'].rpartition('.')[2].replace('_', '-')}/{each['name']}" for each in found]


def _schedules(answers: list[httpx.Response]) -> dict[tuple[str, str], bool]:
    """(Deployment, slug) → whether it is switched on now."""
    found = [answer.json() for answer in answers if answer.is_success]
    return {
        (deployment["id"], schedule["slug"]): schedule["active"]
        for deployment in found
        for schedule in deployment.get("schedules", [])
        if schedule.get("slug")
    }


def _switch_back(client: httpx.Client, switched: dict[tuple[str, str], bool]) -> None:
    """Switch on again what people had switched on: an update of docmill must not end their nightly runs."""
    for deployment in dict.fromkeys(deployment for deployment, _ in switched):
        for schedule in client.get(f"deployments/{deployment}").raise_for_status().json().get("schedules", []):
            if switched.get((deployment, schedule.get("slug"))) and not schedule["active"]:
                place = f"deployments/{deployment}/schedules/{schedule['id']}"
                client.patch(place, json={"active": True}).raise_for_status()
