"""A combined score in a model file: the same bits again, and nothing unsound comes in."""

import numpy as np
import pytest

from kpca_apps.errors import ModelFileError
from kpca_apps.novelty.detector import KernelPCANovelty
from kpca_apps.novelty.surprise.state import combined_state, restore_combined

N = 120


def table_of(seed):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=N)
    rain = np.where(rng.random(N) < 0.5, 0.0, rng.exponential(size=N))
    kind = np.eye(3)[rng.integers(0, 3, N)]
    return np.column_stack([size, size + rng.normal(size=N), rain, rng.random(N) < 0.2, kind])


@pytest.fixture(scope="module", params=[True, False], ids=["contaminated", "clean"])
def detector(request):
    groups = [[0], [1], [2], [3], [4, 5, 6]]
    parameters = {"contaminated": request.param, "as_is": [4, 5, 6], "groups": groups}
    return KernelPCANovelty(**parameters, random_state=0).fit(table_of(0))


def test_every_part_is_among_the_arrays(detector):
    arrays = combined_state(detector.combined_)
    assert all(array.size for array in arrays.values())
    assert arrays["state"].tolist() == [0, 1, 2, 2, 2]
    assert len(arrays["curves.size"]) == 3 + 3


def test_a_score_comes_back_to_the_last_bit(detector):
    X = np.vstack([table_of(1), 5.0 * table_of(2)])
    errors = np.random.default_rng(0).gamma(2.0, size=len(X))
    again = restore_combined(combined_state(detector.combined_), X.shape[1])
    np.testing.assert_array_equal(again(X, errors), detector.combined_(X, errors))
    second = combined_state(again)
    for name, array in combined_state(detector.combined_).items():
        np.testing.assert_array_equal(second[name], array)
    as_detector = KernelPCANovelty.from_state(*detector.to_state())
    np.testing.assert_array_equal(as_detector.score_samples(X), detector.score_samples(X))


def test_a_table_without_varying_numbers_comes_back_too():
    """No number has a scale, and no number is there at all."""
    X = np.column_stack([table_of(3)[:, 3:4], np.full(N, 2.0)])
    fitted = KernelPCANovelty(random_state=0).fit(X)
    assert not fitted.combined_.cells.map.number.size
    again = KernelPCANovelty.from_state(*fitted.to_state())
    np.testing.assert_array_equal(again.score_samples(X), fitted.score_samples(X))


def test_models_from_before_the_combined_score_are_scored_by_their_error(detector):
    meta, arrays = detector.to_state()
    del meta["combined"]
    old = {name: array for name, array in arrays.items() if not name.startswith("combined.")}
    again = KernelPCANovelty.from_state(meta, old)
    assert again.combined_ is None
    X = table_of(1)
    errors = detector.subspace_.reconstruction_error(detector.views_.transform(X))
    np.testing.assert_allclose(-again.score_samples(X), errors, rtol=1e-12)


def first_set(array, value):
    other = array.copy()
    other.flat[0] = value
    return other


# What may befall any array, whatever it means.
BROKEN = {
    "missing": lambda array: None,
    "one short": lambda array: array[:-1],
    "one long": lambda array: np.concatenate([array, array[-1:]]),
    "another dimension": lambda array: array[None],
    "a number": lambda array: array.reshape(-1)[0],
    "single precision": lambda array: array.astype(np.float32),
    "text": lambda array: array.astype(str),
    "objects": lambda array: array.astype(object),
}


def restored(detector, name, array):
    meta, arrays = detector.to_state()
    arrays = dict(arrays)
    del arrays[name]
    if array is not None:
        arrays[name] = array
    return KernelPCANovelty.from_state(meta, arrays)


def names_of(detector):
    return [name for name in detector.to_state()[1] if name.startswith("combined.")]


@pytest.mark.parametrize("damage", BROKEN)
def test_an_array_of_another_kind_or_shape_is_refused(detector, damage):
    arrays = detector.to_state()[1]
    for name in names_of(detector):
        if name == "combined.factor" and damage in ("one short", "one long"):
            continue  # any number of components may be kept
        with pytest.raises(ModelFileError):
            restored(detector, name, BROKEN[damage](arrays[name]))


def test_indices_out_of_range_are_refused(detector):
    arrays = detector.to_state()[1]
    whole = [name for name in names_of(detector) if arrays[name].dtype == np.int64]
    assert len(whole) == 8
    for name in whole:
        for value in (-1, 10**6, -(2**63), 2**63 - 1):
            if name == "combined.n" and value > 2:
                continue  # a number of rows
            with pytest.raises(ModelFileError):
                restored(detector, name, first_set(arrays[name], value))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none_are_refused(detector, value):
    arrays = detector.to_state()[1]
    for name in names_of(detector):
        if arrays[name].dtype != np.float64 or name == "combined.equals":
            continue
        if name == "combined.usual" and value == np.inf:
            continue
        with pytest.raises(ModelFileError):
            restored(detector, name, first_set(arrays[name], value))


def test_counts_out_of_order_are_refused(detector):
    arrays = detector.to_state()[1]
    for name in ("curves.knots", "curves.surprise"):
        with pytest.raises(ModelFileError):
            restored(detector, f"combined.{name}", arrays[f"combined.{name}"][::-1].copy())
        high = first_set(arrays[f"combined.{name}"], 1e9)
        with pytest.raises(ModelFileError):
            restored(detector, f"combined.{name}", high)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", [0.0, -1.0, 1e-300, 1e300, -1e300])
def test_other_numbers_are_refused_or_lead_to_scores(detector, value):
    arrays, X = detector.to_state()[1], np.vstack([table_of(4), 1e9 * table_of(5)])
    for name in names_of(detector):
        if arrays[name].dtype != np.float64:
            continue
        for bad in (first_set(arrays[name], value), np.full_like(arrays[name], value)):
            try:
                again = restored(detector, name, bad)
            except ModelFileError as error:
                assert "\n" not in str(error)
                continue
            try:
                assert np.isfinite(again.score_samples(X)).all()
            except ValueError as error:
                assert "has no score" in str(error)
