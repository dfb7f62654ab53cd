"""docmill: buckets of scanned forms in, typed rows in Postgres out.

This package is the domain. It knows no network, no database and no environment (``docmill.settings`` alone reads it).
"""

__version__ = "0.1.0"
