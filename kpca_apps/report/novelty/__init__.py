"""The report of novelty detection."""
