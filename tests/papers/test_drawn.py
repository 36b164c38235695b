import numpy as np
from numpy.testing import assert_allclose

from kpca_apps.papers.drawn import cassini, half_moons, parabola, rings, three_clusters
from tests.engine.examples import ORACLES


def rng():
    return np.random.default_rng(0)


def test_clusters_lie_around_a_circle_of_radius_four():
    X, labels = three_clusters(rng(), 6000)
    centres = np.stack([X[labels == c].mean(axis=0) for c in range(3)])
    assert_allclose(np.linalg.norm(centres, axis=1), 4.0, atol=0.1)
    assert_allclose([X[labels == c].std(axis=0) for c in range(3)], 0.8, atol=0.05)
    assert_allclose(np.linalg.norm(centres - np.roll(centres, 1, axis=0), axis=1), 6.93, atol=0.1)


def test_beans_and_circle_have_the_extent_of_the_recipe():
    """An independent implementation of the same recipe drew the fixture `cassini_X`."""
    X, labels = cassini(rng(), 5000)
    with np.load(ORACLES / "gallery_fixtures.npz") as oracle:
        known, groups = oracle["cassini_X"], oracle["cassini_y"]
    assert np.bincount(labels).tolist() == [2000, 2000, 1000]
    for group in range(3):
        ours, theirs = X[labels == group], known[groups == group]
        for edge in (np.min, np.max):
            assert_allclose(edge(ours, axis=0), edge(theirs, axis=0), atol=0.1)
        assert_allclose(ours.std(axis=0), theirs.std(axis=0), atol=0.07)
    assert np.linalg.norm(X[labels == 2], axis=1).max() <= 0.6


def test_moons_are_a_sine_and_a_cosine():
    X, labels = half_moons(rng(), 200)
    assert X[labels == 0, 0].max() == np.pi
    assert_allclose(X[labels == 1, 0].max(), 1.5 * np.pi)
    noise = X[:, 1] - np.where(labels == 0, np.sin(X[:, 0]), np.cos(X[:, 0]))
    assert_allclose(noise.std(), 0.2, atol=0.02)


def test_the_parabola_has_noise_of_one_fifth():
    X = parabola(rng(), 5000)
    assert np.abs(X[:, 0]).max() <= 1.0
    assert_allclose((X[:, 1] - X[:, 0] ** 2).std(), 0.2, atol=0.01)


def test_rings_have_their_radii():
    X, labels = rings(rng(), (0.5, 2.0), 0.01, 100)
    assert_allclose(np.linalg.norm(X, axis=1), np.array([0.5, 2.0])[labels], atol=0.05)
