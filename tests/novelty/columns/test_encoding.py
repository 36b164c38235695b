"""Tables are encoded as a matrix, and matrix columns decode to the table's cells."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.errors import InputError
from kpca_apps.novelty.columns.encoding import ColumnSummary
from kpca_apps.novelty.columns.parts import Sample
from kpca_apps.novelty.columns.plan import ColumnOptions, infer_plan
from kpca_apps.novelty.redact import visible_notes, without_values
from kpca_apps.novelty.result import CategoryProfile, NumericProfile
from kpca_apps.novelty.screening.encoded import LearnedEncoder, encode
from kpca_apps.novelty.screening.profiles import column_profiles
from kpca_apps.tables.frames import table_from_frame
from kpca_apps.tables.table import Table
from tests.system.model_parts import from_file


def fitted(table: Table, *, contaminated: bool = True, **options: Any) -> LearnedEncoder:
    return LearnedEncoder.learn(
        table, infer_plan(table, ColumnOptions(**options)), contaminated=contaminated
    )


def table_of(**columns: Any) -> Table:
    return table_from_frame(pl.DataFrame(columns), "birds.csv")


@pytest.fixture
def birds() -> Table:
    """Return a small table with a column of every used role, with gaps and errors."""
    mass = [f"{value:.1f}" for value in np.random.default_rng(0).normal(4000, 500, 60)]
    mass[3], mass[4] = "12O", ""
    seen = [f"2008-03-{1 + i % 28:02d}" for i in range(60)]
    seen[5] = "2008-13-45"
    kind = (["adelie"] * 30 + ["gentoo"] * 24 + ["emperor", ""] * 3)[:60]
    notes = [f"bird {i} was seen{'!' * (i % 3)}" for i in range(60)]
    return table_of(mass=mass, seen=seen, kind=kind, notes=notes, ringed=["yes", "No"] * 30)


def test_groups_cover_the_matrix_and_indicators_are_as_is(birds: Table) -> None:
    encoder = fitted(birds)
    matrix = encoder.matrix(birds)
    columns = [column for group in encoder.groups for column in group.columns]
    assert columns == list(range(matrix.shape[1]))
    assert [group.name for group in encoder.groups] == birds.frame.columns
    assert np.isfinite(matrix).all()
    # Matrix columns of "mass": number, missing indicator; of "seen": days, sine and cosine of the
    # weekday, missing indicator; of "kind": indicators of 3 levels, of other levels and of missing
    # cells; of "ringed": indicators of "yes", of "No" and of other levels.
    assert [len(group.columns) for group in encoder.groups[:3]] == [2, 4, 5]
    expected = [1, 5, 6, 7, 8, 9, 10, *encoder.groups[4].columns]
    assert list(encoder.as_is) == sorted(expected)


def test_a_clean_reference_gets_no_gap_indicators(birds: Table) -> None:
    encoder = fitted(birds, contaminated=False)
    assert [len(group.columns) for group in encoder.groups[:2]] == [1, 3]


def test_faulty_cells_are_stated_with_their_place_and_become_gaps(birds: Table) -> None:
    encoder = fitted(birds)
    rows = encode(encoder, Sample.of(birds))
    assert visible_notes(rows.warnings, ()) == (
        'Column "mass": 1 cell is not a number and counts as missing, in row 4 ("12O").',
        'Column "seen": 1 cell is not a possible date and counts as missing, in row 6 '
        '("2008-13-45").',
        '3 missing values were filled with what the other columns suggest, in "mass", "seen".',
    )
    assert rows.sample[:, 1].nonzero()[0].tolist() == [3, 4]
    assert encoder.seen(birds, 3, 0) == ("12O (not a number)", None)
    assert encoder.seen(birds, 4, 0) == ("(missing)", None)
    assert encoder.seen(birds, 5, 1) == ("2008-13-45 (not a date)", None)


def test_a_table_with_another_decimal_mark_is_reported(birds: Table) -> None:
    encoder = fitted(birds)
    commas = pl.Series("mass", [f"{number},25" for number in range(birds.frame.height)])
    new = Table(birds.frame.with_columns(commas), None, birds.source)
    with pytest.raises(InputError, match="decimal commas, and would be read with decimal points"):
        encode(encoder, Sample.of(new))


def test_places_are_lines_of_the_file_where_it_has_lines(birds: Table) -> None:
    lined = Table(birds.frame, np.arange(60) * 2 + 3, birds.source)
    notes = encode(fitted(lined), Sample.of(lined)).warnings
    assert 'line 9 ("12O").' in visible_notes(notes, ())[0] and "12O" not in notes[0]


@given(st.lists(st.sampled_from(["a", "b", "c", "d", "", "?"]), min_size=12, max_size=60))
def test_one_indicator_a_row_and_levels_lie_at_the_stated_distance(cells: list[str]) -> None:
    table = table_of(x=[*cells, "a", "b"], y=np.arange(len(cells) + 2) * 1.5)
    encoder = fitted(table, categorical=("x",))
    block = encoder.matrix(table)[:, list(encoder.groups[0].columns)]
    assert (np.count_nonzero(block, axis=1) == 1).all()
    shares = np.count_nonzero(block, axis=0) / len(block)
    squared_distance = np.sqrt(2 / max(1 - np.sum(shares**2), 1e-3))
    np.testing.assert_allclose(2 * block.max() ** 2, squared_distance, rtol=1e-12)


def test_rare_levels_are_pooled_and_at_most_fifty_kept() -> None:
    cells = [f"level {i}" for i in range(60) for _ in range(5)] + ["rare"] * 4
    table = table_of(x=cells, y=np.arange(len(cells)) * 1.5)
    encoder = fitted(table)
    block = encoder.matrix(table)[:, list(encoder.groups[0].columns)]
    assert block.shape[1] == 51
    assert np.count_nonzero(block[:, 50]) == 10 * 5 + 4


def test_an_unseen_level_is_other_and_named(birds: Table) -> None:
    encoder = fitted(birds)
    new = Table(birds.frame.with_columns(pl.lit("puffin").alias("kind")), None, birds.source)
    group = list(encoder.groups[2].columns)
    assert encoder.coders[2].describe(encoder.matrix(new)[0, group]) == ("a rarer value", None)
    assert encoder.seen(new, 0, 2) == ("puffin", "puffin")


def test_describing_encoded_cells_says_what_stands_there(birds: Table) -> None:
    encoder = fitted(birds)
    row = encoder.matrix(birds)[0]
    described = [
        encoder.coders[g].describe(row[list(group.columns)])
        for g, group in enumerate(encoder.groups)
    ]
    mass = float(birds.frame["mass"][0])
    assert described == [
        (f"{mass:.0f}", mass),
        ("2008-03-01", 1204329600.0),
        ("adelie", "adelie"),
        ("about 15 characters", None),
        ("yes", "yes"),
    ]
    assert encoder.coders[2].describe(encoder.matrix(birds)[55, 6:11]) == ("(missing)", None)
    assert encoder.coders[0].describe(np.array([4000.0, 1.0])) == ("(missing)", None)
    assert encoder.seen(birds, 0, 4) == ("yes", "yes")


def test_hours_count_where_they_vary() -> None:
    table = table_of(at=[f"2008-03-01 {i % 24:02d}:00" for i in range(48)], y=np.arange(48) * 1.5)
    encoder = fitted(table)
    block = encoder.matrix(table)[:, list(encoder.groups[0].columns)]
    # The features are the day, and the sine and cosine of the hour. The weekday is not a feature,
    # because it is the same in all rows.
    assert block.shape[1] == 3
    np.testing.assert_allclose(block[6, 1:], [1, 0], atol=1e-9)
    assert encoder.coders[0].describe(block[6])[0] == "2008-03-01 06:00"


def test_columns_are_matched_by_name_whatever_their_order_and_type() -> None:
    rng = np.random.default_rng(0)
    x, day = rng.normal(size=50), rng.integers(0, 9000, 50)
    typed = pl.DataFrame(
        {"x": x, "day": pl.Series(day).cast(pl.Int32).cast(pl.Date), "on": x > 0, "k": day % 3}
    )
    text = typed.with_columns(pl.col("x", "day", "on", "k").cast(pl.String)).select(
        "on", "k", "day", "x"
    )
    encoder = fitted(table_from_frame(typed), categorical=("k",))
    np.testing.assert_array_equal(
        encoder.matrix(table_from_frame(text)), encoder.matrix(table_from_frame(typed))
    )


def test_rows_do_not_depend_on_their_batch(birds: Table) -> None:
    encoder = fitted(birds)
    whole = encoder.matrix(birds)
    part = Table(birds.frame[2:9], None, birds.source)
    np.testing.assert_array_equal(encoder.matrix(part), whole[2:9])
    assert encoder.matrix(Table(birds.frame[:0], None, birds.source)).shape[0] == 0


def test_missing_and_extra_columns_are_named(birds: Table) -> None:
    encoder = fitted(birds)
    renamed = Table(birds.frame.rename({"mass": "mas"}), None, birds.source)
    with pytest.raises(InputError, match=r'birds.csv: column "mass" is missing.*mean "mas"'):
        encode(encoder, Sample.of(renamed))
    wider = Table(birds.frame.with_columns(extra=pl.lit(1)), None, birds.source)
    assert 'left unused: "extra".' in encode(encoder, Sample.of(wider)).warnings[0]


def test_a_column_that_no_longer_reads_is_refused_with_its_place(birds: Table) -> None:
    encoder = fitted(birds)
    broken = Table(birds.frame.with_columns(mass=pl.lit("heavy")), None, birds.source)
    where = r'birds.csv, row 1: column "mass".*60 cells.*'
    with pytest.raises(InputError, match=f'{where}"heavy"'), without_values(()):
        encode(encoder, Sample.of(broken))
    with pytest.raises(InputError, match=where) as caught, without_values({"mass"}):
        encode(encoder, Sample.of(broken))
    assert "heavy" not in str(caught.value)


def test_gaps_the_reference_never_had_are_stated(birds: Table) -> None:
    encoder = fitted(birds)
    gappy = Table(birds.frame.with_columns(ringed=pl.lit("")), None, birds.source)
    assert any(
        'Column "ringed": 60 rows lack a value' in text
        for text in encode(encoder, Sample.of(gappy)).warnings
    )


def test_profiles_follow_the_table(birds: Table) -> None:
    encoder = fitted(birds)
    wider = Table(birds.frame.with_columns(extra=pl.lit(1)).reverse(), None, birds.source)
    profiles = {
        profile.name: profile for profile in column_profiles(encode(encoder, Sample.of(wider)))
    }
    assert list(profiles) == wider.frame.columns and not profiles["extra"].used
    mass, seen = profiles["mass"].distribution, profiles["seen"].distribution
    assert isinstance(mass, NumericProfile) and isinstance(seen, NumericProfile)
    assert mass.counts.sum() == 58 and len(mass.counts) == 40
    assert (profiles["mass"].n_missing, profiles["kind"].n_missing) == (2, 3)
    assert seen.is_date
    assert profiles["kind"].distribution == CategoryProfile(
        ("adelie", "gentoo", "emperor"), (30, 24, 3)
    )
    assert profiles["notes"].distribution is None


def test_expected_values_are_in_the_notation_of_their_column() -> None:
    n = 40
    table = table_of(
        price=[f"{1000 + 17 * i:,}".replace(",", ".") + ",50 EUR" for i in range(n)],
        day=[f"{1 + i % 28}.3.2008" for i in range(n)],
        paid=["Yes", "No", "Yes", "yes"] * (n // 4),
    )
    encoder = fitted(table)
    again = from_file(encoder)
    row = encoder.matrix(table)[0]
    for item in (encoder, again):
        texts = [
            item.coders[g].describe(row[list(group.columns)]) for g, group in enumerate(item.groups)
        ]
        assert [text for text, _ in texts] == ["1.000 EUR", "1.3.2008", "Yes"]
        assert texts[0][1] == 1000.5 and texts[2][1] == "yes"


@pytest.mark.parametrize(
    ("expected", "seen", "text"),
    [(2.5, 1.0, "2"), (2.5, 3.0, "2"), (2.5, 2.0, "3"), (7.9, 2.0, "5"), (2.2, 2.0, "2")],
)
def test_what_is_expected_in_a_column_of_few_values_is_one_of_them(
    expected: float, seen: float, text: str
) -> None:
    # The number 33 occurs only once, so it is not among the values that may be expected.
    frame = pl.DataFrame({"grade": [2.0, 3.0, 5.0] * 20 + [33.0], "size": np.arange(61.0)})
    table = table_from_frame(frame)
    plan = infer_plan(table, ColumnOptions(numeric=("grade",)))
    coder = LearnedEncoder.learn(table, plan, contaminated=True).coders[0]
    assert coder.describe(np.array([expected]), seen) == (text, float(text))


def test_numbers_that_rarely_repeat_are_expected_as_they_are() -> None:
    table = table_from_frame(pl.DataFrame({"age": np.arange(60.0) % 30, "size": np.arange(60.0)}))
    coder = LearnedEncoder.learn(table, infer_plan(table), contaminated=True).coders[0]
    assert coder.describe(np.array([17.5]), 17.0)[1] == 17.5


def test_a_number_is_far_where_the_others_are_nearer_to_each_other() -> None:
    summary = ColumnSummary("pressure", 90, 0, quantiles=(100.0, 140.0, 180.0))
    far, near = (14_020.0, 261.0, 55.0, 1.4, -1.0), (259.0, 140.0, 57.0)
    assert all(map(summary.is_far, far)) and not any(map(summary.is_far, near))
    # A date has no logarithm, and without known numbers no value is far.
    assert not replace(summary, is_date=True).is_far(50.0)
    assert not replace(summary, quantiles=()).is_far(50.0)
