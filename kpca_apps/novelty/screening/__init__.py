"""Screen a table: options, scores of all rows, verdict."""
