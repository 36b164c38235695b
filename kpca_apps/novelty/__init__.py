"""Hoffmann's novelty detection (2007) for tables."""
