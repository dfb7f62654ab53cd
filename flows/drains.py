"""Drain tasks of one run: on this event loop, or spread over Ray or Dask."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Any

from docmill.failures import ConfigurationError
from flows.resources import World
from tasks.drain import drain
from tasks.orders import DrainOrder
from tasks.resources import OpenResources

logger = logging.getLogger(__name__)


async def run_drains(world: World, open_resources: OpenResources, order: DrainOrder, workers: int) -> int:
    """Run ``workers`` drain tasks until the batch is through.

    Returns:
        How many page outcomes they recorded.

    Raises:
        Exception: the first error of a drain, where the others did not finish the batch in its place.
    """
    orders = [replace(order, slot=slot) for slot in range(workers)]
    runner = world.settings.prefect.task_runner
    if runner == "threads":
        ended = await asyncio.gather(*(drain(open_resources, each) for each in orders), return_exceptions=True)
    else:
        ended = await asyncio.to_thread(_on_cluster, _task_runner(runner), open_resources, orders)
    errors = [each for each in ended if isinstance(each, BaseException)]
    if errors:
        for error in errors:
            logger.warning("a drain task ended with %s", type(error).__name__)
        left = await world.ledger.remaining(order.batch_id)
        if not left.nothing:
            raise errors[0]
    return sum(each for each in ended if isinstance(each, int))


def _on_cluster(runner: Any, open_resources: OpenResources, orders: list[DrainOrder]) -> list[int | BaseException]:
    ended: list[int | BaseException] = []
    with runner:
        futures = [runner.submit(drain, {"open_resources": open_resources, "order": each}) for each in orders]
        for future in futures:
            try:
                ended.append(future.result())
            except Exception as error:
                ended.append(error)
    return ended


def _task_runner(name: str) -> Any:
    """The extra's task runner with its own defaults: a local cluster, or the one that its environment variables name.

    Raises:
        ConfigurationError: the extra is not installed.
    """
    try:
        if name == "ray":
            from prefect_ray import RayTaskRunner

            return RayTaskRunner()
        from prefect_dask import DaskTaskRunner

        return DaskTaskRunner()
    except ImportError as error:
        raise ConfigurationError(
            f"prefect.task_runner is {name}, which is not installed", remedy=f"pip install 'docmill[{name}]'"
        ) from error
