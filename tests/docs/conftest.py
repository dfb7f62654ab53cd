"""A database with docmill's tables and views and nothing in them."""

import asyncio

import pytest

from storage.embedded.postgres import EmbeddedPostgres
from storage.migrations import upgrade


@pytest.fixture(scope="session")
def database(embedded_postgres: EmbeddedPostgres) -> str:
    url = embedded_postgres.create_database("documentation")
    asyncio.run(upgrade(url))
    return url
