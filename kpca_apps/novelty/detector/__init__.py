"""The detector: novelty scores, thresholds and reasons for rows of numbers.

`fit` makes a `detector`: `trim` chooses rows, `views` scales them, `row_scores` scores them.
`hoffmann` is the classical detector; `large_groups` are set apart. `threshold` and `rarity` judge
scores; `reasons` explains them, using `neighbours` (found by `nearest`). `estimator` and `pyod` are
interfaces of other libraries.
"""
