"""``kpca novelty``: screen, fit, score, compare, explain."""
