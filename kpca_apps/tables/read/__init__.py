"""Readers: one a kind of file."""
