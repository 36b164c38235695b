"""Errors say what is wrong and name its place exactly once."""

import pickle
from pathlib import Path

import pytest

from kpca_apps.errors import (
    ConfigError,
    InputError,
    KpcaError,
    MemoryLimitError,
    OptionError,
    ParameterError,
    RefusedError,
    about,
)


@pytest.mark.parametrize(
    "error",
    [
        InputError("it is empty."),
        MemoryLimitError("it is too large."),
        OptionError("skip_rows", "does not apply."),
        ParameterError("n_components", "is 0; give a whole number >= 1"),
    ],
)
def test_the_nearest_name_is_put_before_what_is_wrong(error: KpcaError) -> None:
    sentence = str(error)
    with pytest.raises(type(error)) as caught, about("folder"), about(Path("a\nb\u202e.csv")):
        raise error
    assert str(caught.value) == rf"a\nb\u202e.csv: {sentence}"
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (type(error), str(caught.value))


def test_an_error_that_names_its_place_keeps_it_and_others_pass() -> None:
    with pytest.raises(InputError, match=r"^disk: it is full\.$"), about("table.csv"):
        raise InputError("it is full.", "disk")
    with pytest.raises(ValueError, match=r"^a slip$"), about("table.csv"):
        raise ValueError("a slip")
    assert len(str(InputError("it is empty.", "x" * 1000))) < 320


@pytest.mark.parametrize(
    "error",
    [
        RefusedError("No Dask scheduler answers at tcp://ada:ROSEBUD@h:1."),
        ConfigError('c.toml: workers is "tcp://ada:ROSEBUD@h:1"; give one of threads, dask.'),
        InputError("no such file.", "postgresql://ada:ROSEBUD@h/shop"),
    ],
)
def test_no_error_repeats_the_password_of_an_address(error: KpcaError) -> None:
    assert "ROSEBUD" not in str(error) and "://ada:...@h" in str(error)
