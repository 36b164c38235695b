import numpy as np

from kpca_apps.engine.seeding import seeded_generator


def test_seeds_are_reproducible_and_generators_advance():
    draws = [seeded_generator(seed).random() for seed in (3, 3, 4, None, None)]
    assert draws[0] == draws[1] != draws[2] and draws[3] == draws[4]
    rng, state = np.random.default_rng(0), np.random.RandomState(0)
    assert seeded_generator(rng) is rng
    assert seeded_generator(state).random() != seeded_generator(state).random()
