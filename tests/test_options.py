"""Options are declared once; the commands, Python and JSON take them from there."""

import pickle
from dataclasses import fields
from typing import Any

import pytest

from kpca_apps.errors import ConfigError, OptionError, flag_of
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.screening.model import ScreeningOptions
from kpca_apps.options import NoveltyOptions, in_keywords
from kpca_apps.tables.input_file import ReadOptions


@pytest.mark.parametrize("kind", [ScreeningOptions, ColumnOptions, ReadOptions])
def test_defaults_in_the_middle_are_those_declared(kind: Any) -> None:
    declared = vars(NoveltyOptions())
    own = {name: value for name, value in vars(kind()).items() if name in declared}
    assert own == {name: declared[name] or default for name, default in own.items()}
    assert vars(kind(**NoveltyOptions().given(kind))) == vars(kind())


def test_an_option_that_is_refused_is_known_by_its_field() -> None:
    with pytest.raises(OptionError, match=r"^--landmarks must be at least 2, got 1$") as caught:
        ScreeningOptions(n_landmarks=1)
    error = caught.value
    assert (error.field, isinstance(error, ConfigError), error.exit_code) == (
        "n_landmarks",
        True,
        2,
    )
    error.args = (in_keywords(str(error)),)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.field) == ("n_landmarks= must be at least 2, got 1", "n_landmarks")


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("--landmarks must be 2", "n_landmarks= must be 2"),
        ("give --share or (--skip-rows), --by.", "give share= or (skip_rows=), by=."),
        ('a column "of --count 3"', 'a column "of --count 3"'),
        ("a--share, --shares, --out, --force", "a--share, --shares, --out, --force"),
        ("leave --by out, or --landmarks", "leave by= out, or n_landmarks="),
        ('the column "a"b": leave --by out', 'the column "a"b": leave by= out'),
        ('no label is "y "--share" q" (--positive).', 'no label is "y "--share" q" (positive=).'),
    ],
)
def test_options_in_a_sentence_are_spelled_as_keywords(sentence: str, expected: str) -> None:
    assert in_keywords(sentence) == expected


def test_every_field_has_a_flag_of_its_own() -> None:
    flags = [flag_of(field.name) for field in fields(NoveltyOptions)]
    assert len({*flags}) == len(flags)
