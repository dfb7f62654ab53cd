"""The steps: one verb per file."""
