"""Make one random generator from any random_state that scikit-learn accepts."""

from __future__ import annotations

import numpy as np

from kpca_apps.names import shown
from kpca_apps.options import LARGEST_SEED, is_number

Seed = int | np.random.RandomState | np.random.Generator | None


def seeded_generator(random_state: Seed) -> np.random.Generator:
    """Return the generator for all draws of one fit; `None` means the fixed seed 0."""
    if random_state is None:
        return np.random.default_rng(0)
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        # Import here, as scikit-learn is slow to import.
        from sklearn.utils import check_random_state

        state = check_random_state(random_state)
    elif is_number(random_state, 0, LARGEST_SEED, whole=True):
        state = np.random.RandomState(random_state)
    else:
        raise ValueError(
            f"random_state is {shown(random_state)}; give a whole number from 0 to {LARGEST_SEED}."
        )
    seed = state.randint(np.iinfo(np.int32).max)
    return np.random.default_rng(seed)
