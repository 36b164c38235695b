"""One seeded generator from whatever scikit-learn's users hand over."""

from __future__ import annotations

import numpy as np

__all__ = ["seeded_generator"]


def seeded_generator(random_state: int | np.random.RandomState | None) -> np.random.Generator:
    """Return the generator of all draws of one fit; a RandomState moves on by one draw."""
    # Loaded here: it takes as long as all else that looks at a table, and a dry run draws nothing.
    from sklearn.utils import check_random_state

    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return np.random.default_rng(seed)
