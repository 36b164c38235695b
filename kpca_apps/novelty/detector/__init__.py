"""The detector: rows of numbers in, novelty scores, thresholds and reasons out.

`fit` makes a `detector`: `trim` chooses rows, `views` scales them, `row_scores` scores them;
`hoffmann` is the classical one, `large_groups` are set apart. `threshold` and `rarity` judge
scores, `reasons` explains them by `neighbours` (found by `nearest`). `estimator` and `pyod` are
faces of other libraries.
"""
