"""The ledger: batches, documents, pages and what was found on them, in Postgres."""
