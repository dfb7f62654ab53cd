"""What is kept: objects, and the ledger in Postgres; and the embedded servers of both."""
