"""What is told of a table beside its ranks: cells, repeats, drift, patterns, hints."""
