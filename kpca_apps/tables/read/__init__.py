"""Readers, one for each format, with the interface in `reader`."""
