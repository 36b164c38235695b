"""Describe what is found in a judged table: rows, patterns, repeats, likely errors."""
