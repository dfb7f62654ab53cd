"""Postgres and an object store that docmill brings along: real servers, loopback only, started and ended by docmill."""
