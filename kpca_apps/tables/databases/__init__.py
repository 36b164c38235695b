"""Tables in databases: PostgreSQL, SQLite, DuckDB; what is read of them, and scores put beside."""
