"""Engines, and the processes that they run in."""
