"""Checks of cells by their columns, and of columns that moved."""
