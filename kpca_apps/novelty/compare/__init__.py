"""Comparison of detectors by labels, and of two screenings."""
