"""A table screened: options, scores of all rows, the ranked list, the result."""
