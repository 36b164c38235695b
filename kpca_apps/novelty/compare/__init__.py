"""Detectors beside each other on rows of known labels."""
