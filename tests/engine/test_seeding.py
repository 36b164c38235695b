from __future__ import annotations

import numpy as np

from kpca_apps.engine.seeding import seeded_generator


def test_an_integer_repeats_itself():
    assert seeded_generator(3).random() == seeded_generator(3).random()
    assert seeded_generator(3).random() != seeded_generator(4).random()


def test_without_a_seed_the_draws_are_the_same_every_time():
    assert seeded_generator(None).random() == seeded_generator(None).random()


def test_a_generator_is_the_one_that_goes_on():
    rng = np.random.default_rng(0)
    assert seeded_generator(rng) is rng


def test_a_random_state_moves_on():
    state = np.random.RandomState(0)
    assert seeded_generator(state).random() != seeded_generator(state).random()
