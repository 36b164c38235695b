"""``kpca papers``: list, run, fetch."""
