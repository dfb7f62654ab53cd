"""Runs of the deployment ``keep-warm``, asked for by those who need a server on another host."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

from docmill.failures import ServerNotReady
from docmill.settings import Settings
from flows.endpoints import carried_environment
from flows.local_prefect import LocalPrefect

if TYPE_CHECKING:
    from prefect.settings.legacy import Setting

    from flows.starters import AskDeployment

DEPLOYMENT = "keep-warm/keep-warm"


@contextlib.contextmanager
def server_of(settings: Settings) -> Iterator[None]:
    """Prefect's client uses the server that it is pointed to already (in a flow run, say), else the settings'.

    Never the temporary one that Prefect would start by itself.

    Raises:
        ServerNotReady: the local one is asked for and was never started.
    """
    from prefect.settings import PREFECT_API_KEY, PREFECT_API_URL, temporary_settings

    if PREFECT_API_URL.value():
        yield
        return
    local = LocalPrefect(settings.data_dir, pool=settings.prefect.work_pool)
    updates: dict[Setting, str] = {PREFECT_API_URL: settings.prefect.api_url or local.api_url}
    if settings.prefect.api_key is not None:
        updates[PREFECT_API_KEY] = settings.prefect.api_key.get_secret_value()
    with temporary_settings(updates):
        yield


def ask_keep_warm(settings: Settings) -> AskDeployment:
    """Something that starts a run of ``keep-warm`` and then says how it ended."""

    async def ask(parameters: dict[str, object], idempotency_key: str) -> Callable[[], Awaitable[str | None]]:
        # Prefect takes a while to import and reads its settings then
        import httpx
        from prefect.client.orchestration import get_client
        from prefect.deployments import arun_deployment
        from prefect.exceptions import ObjectNotFound

        environment = {} if settings.prefect.api_url else carried_environment(settings)
        try:
            with server_of(settings):
                run = await arun_deployment(
                    DEPLOYMENT, parameters=dict(parameters), timeout=0, as_subflow=False,
                    idempotency_key=idempotency_key, job_variables={"env": environment} if environment else None,
                )  # fmt: skip
        except ObjectNotFound as error:
            raise ServerNotReady(
                f"the Prefect server has no deployment {DEPLOYMENT}", remedy="docmill up registers it"
            ) from error
        except httpx.HTTPError as error:
            raise ServerNotReady(
                "the Prefect server does not answer", remedy="docmill up, or check prefect.api_url"
            ) from error

        async def ended() -> str | None:
            try:
                with server_of(settings):
                    client = get_client()
                async with client:
                    state = (await client.read_flow_run(run.id)).state
            except httpx.HTTPError:
                return None
            if state is None or not state.is_final() or state.is_completed():
                return None
            return f"{state.name}: {state.message or 'no message'}"

        return ended

    return ask
