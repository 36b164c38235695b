"""Read tables of databases (PostgreSQL, SQLite, DuckDB), and write scores to them."""
