"""A combined score round-trips bit for bit through a model file; invalid files are refused."""

from dataclasses import replace

import numpy as np
import pytest

from kpca_apps.errors import ModelFileError
from kpca_apps.novelty.detector.detector import Detector
from kpca_apps.novelty.detector.estimator import KernelPCANovelty
from kpca_apps.novelty.detector.large_groups import LargeGroup, LargeGroups
from tests.quick import quick
from tests.system.model_parts import from_file, model_from, parts_of

N = 120


def table_of(seed):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=N)
    rain = np.where(rng.random(N) < 0.5, 0.0, rng.exponential(size=N))
    kind = np.eye(3)[rng.integers(0, 3, N)]
    curve = np.exp(7 + 0.3 * rng.normal(size=(N, 1)) + 0.1 * rng.normal(size=(N, 4)))
    flag = rng.random(N) < 0.2
    return np.column_stack([size, size + rng.normal(size=N), rain, flag, kind, curve])


@pytest.fixture(scope="module", params=quick([True, False], True), ids=["contaminated", "clean"])
def detector(request):
    groups = [[0], [1], [2], [3], [4, 5, 6], [7], [8], [9], [10]]
    parameters = {"contaminated": request.param, "as_is": [4, 5, 6], "groups": groups}
    return KernelPCANovelty(**parameters, random_state=0).fit(table_of(0))


def test_every_part_is_among_the_arrays(detector):
    arrays = parts_of(detector.combined_)[1]
    assert all(array.size for array in arrays.values())
    assert arrays["cells.map.state"].tolist() == [0, 1, 2, 2, 2]
    assert {name for name in arrays if "states" in name} == {
        f"cells.states.{i}.{part}" for i in range(3) for part in ("knots", "surprise")
    }


def restored(detector):
    return from_file(detector.detector_)


def test_a_score_comes_back_to_the_last_bit(detector):
    X = np.vstack([table_of(1), 5.0 * table_of(2)])
    errors = np.random.default_rng(0).gamma(2.0, size=len(X))
    again = from_file(detector.combined_)
    np.testing.assert_array_equal(again(X, errors), detector.combined_(X, errors))
    second = parts_of(again)[1]
    for name, array in parts_of(detector.combined_)[1].items():
        np.testing.assert_array_equal(second[name], array)
    np.testing.assert_array_equal(restored(detector).scores(X), detector.novelty_scores(X))


def test_a_table_without_varying_numbers_comes_back_too():
    """One column has two values and the other only one, so no column is scaled as a number."""
    X = np.column_stack([table_of(3)[:, 3:4], np.full(N, 2.0)])
    fitted = KernelPCANovelty(random_state=0).fit(X)
    assert not fitted.combined_.cells.map.number.size
    np.testing.assert_array_equal(restored(fitted).scores(X), fitted.novelty_scores(X))


def first_set(array, value):
    other = array.copy()
    other.flat[0] = value
    return other


def damaged(detector, name, array):
    model, arrays = parts_of(detector.detector_)
    del arrays[name]
    if array is not None:
        arrays[name] = array
    return model_from(Detector, model, arrays)


def arrays_of(detector):
    arrays = parts_of(detector.detector_)[1]
    return {name: array for name, array in arrays.items() if name.startswith("combined.")}


def test_an_array_of_another_shape_is_refused(detector):
    for name, array in arrays_of(detector).items():
        damages = [None, array[None], array[:-1]]
        if name == "combined.cells.columns.factor":
            damages.pop()  # any number of components is valid
        for damage in damages:
            with pytest.raises(ModelFileError):
                damaged(detector, name, damage)


def test_indices_out_of_range_are_refused(detector):
    arrays = arrays_of(detector)
    whole = [name for name in arrays if arrays[name].dtype == np.int64]
    assert len(whole) == 7
    for name in whole:
        for value in (-1, 10**6, -(2**63), 2**63 - 1):
            with pytest.raises(ModelFileError):
                damaged(detector, name, first_set(arrays[name], value))


@pytest.mark.parametrize("value", quick([np.nan, np.inf, -np.inf], np.nan))
def test_invalid_numbers_are_refused(detector, value):
    arrays = arrays_of(detector)
    for name in arrays:
        if arrays[name].dtype != np.float64 or name == "combined.cells.map.equals":
            continue
        if name == "combined.cells.usual" and value == np.inf:
            continue
        with pytest.raises(ModelFileError):
            damaged(detector, name, first_set(arrays[name], value))


def test_counts_out_of_order_are_refused(detector):
    arrays = arrays_of(detector)
    for name in ("combined.mean.0.knots", "combined.mean.0.surprise"):
        for bad in (arrays[name][::-1].copy(), first_set(arrays[name], 1e9)):
            with pytest.raises(ModelFileError):
                damaged(detector, name, bad)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", quick([0.0, -1.0, 1e-300, 1e300, -1e300], -1.0))
def test_other_numbers_are_refused_or_lead_to_scores(detector, value):
    arrays, X = arrays_of(detector), np.vstack([table_of(4), 1e9 * table_of(5)])
    for name in arrays:
        if arrays[name].dtype != np.float64:
            continue
        for bad in (first_set(arrays[name], value), np.full_like(arrays[name], value)):
            try:
                again = damaged(detector, name, bad)
            except ModelFileError as error:
                assert "\n" not in str(error)
                continue
            try:
                assert np.isfinite(again.scores(X)).all()
            except ValueError as error:
                assert "has no score" in str(error)


def test_a_large_group_without_its_tails_is_refused(detector):
    combined = replace(detector.combined_, large_groups=LargeGroups((LargeGroup(0, 1.0),)))
    with pytest.raises(ModelFileError):
        from_file(combined)
