"""What runs: Prefect flows, and the composition root that gives them the world."""
