"""Checks of a table beside its ranks: odd cells, repeats, drift, patterns, hints."""
