"""The detector: novelty scores, thresholds and reasons for rows of numbers."""
