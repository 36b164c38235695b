"""The detector: rows of numbers in, novelty scores, thresholds and reasons out."""
