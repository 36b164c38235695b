"""``kpca novelty``: screen, fit, score, explain, compare, rules, diff."""
