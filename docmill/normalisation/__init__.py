"""Text as printed → typed values: dates, numbers, money, booleans. Pure functions; ``None`` where it is not one."""
