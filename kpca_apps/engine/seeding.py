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
    if not isinstance(random_state, np.random.RandomState):
        if not is_number(random_state, 0, LARGEST_SEED, whole=True):
            raise ValueError(
                f"random_state is {shown(random_state)}; give a whole number from 0 to "
                f"{LARGEST_SEED}."
            )
        random_state = np.random.RandomState(random_state)
    return np.random.default_rng(random_state.randint(np.iinfo(np.int32).max))
