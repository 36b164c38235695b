"""Reasons of whole tables: true of the rows they are told of, and none left out."""

from __future__ import annotations

import numpy as np
import polars as pl

from kpca_apps.files.tables.opening import table_from_frame
from kpca_apps.novelty.screening.options import ScreeningOptions
from kpca_apps.novelty.screening.ranked_list import explain_rows
from kpca_apps.novelty.screening.run import screen, screen_table
from tests.novelty.tables import correlated

# Passengers of the Titanic (British Board of Trade, 1912): died and survived, by class, sex, age.
TITANIC = {
    ("1st", "Male", "Child"): (0, 5),
    ("1st", "Female", "Child"): (0, 1),
    ("1st", "Male", "Adult"): (118, 57),
    ("1st", "Female", "Adult"): (4, 140),
    ("2nd", "Male", "Child"): (0, 11),
    ("2nd", "Female", "Child"): (0, 13),
    ("2nd", "Male", "Adult"): (154, 14),
    ("2nd", "Female", "Adult"): (13, 80),
    ("3rd", "Male", "Child"): (35, 13),
    ("3rd", "Female", "Child"): (17, 14),
    ("3rd", "Male", "Adult"): (387, 75),
    ("3rd", "Female", "Adult"): (89, 76),
    ("Crew", "Male", "Adult"): (670, 192),
    ("Crew", "Female", "Adult"): (3, 20),
}


def test_women_of_first_class_are_not_told_that_they_should_have_died() -> None:
    rows = [
        (*who, survived)
        for who, counts in TITANIC.items()
        for survived, count in zip(("no", "yes"), counts, strict=True)
        for _ in range(count)
    ]
    frame = pl.DataFrame(rows, schema=["class", "sex", "age", "survived"], orient="row")
    result, model = screen(table_from_frame(frame))
    saved = np.array(
        [place for place, row in enumerate(rows) if row[:3] == ("1st", "Female", "Adult")]
    )
    saved = saved[[rows[place][3] == "yes" for place in saved]][::20]
    women = table_from_frame(frame[saved.tolist()])
    told = explain_rows(model, women, model.encoder.matrix(women), saved)
    assert all(reason.column != "survived" for reasons in told for reason in reasons)
    # Groups of 1 to 5 % of the rows are all among those that suggest values.
    kept = frame[model.detector.neighbours_.index.tolist()].group_by(frame.columns).len()
    small = frame.group_by(frame.columns).len().filter(pl.col("len").is_between(22, 110))
    both = small.join(kept, on=frame.columns, how="left")
    assert (both["len_right"].fill_null(0) >= 0.8 * both["len"]).all()
    assert result.n_flagged


def test_every_flagged_row_has_a_reason_however_few_are_asked_for() -> None:
    few = screen_table(correlated(400), options=ScreeningOptions(explain=3, count=120))
    assert [row.explained for row in few.ranked] == [row.flagged for row in few.ranked]
    assert (len(few.ranked), few.settings["rows explained"]) == (120, 120)
    assert all(row.reasons for row in few.ranked)


def test_stones_without_size_are_told_by_their_three_lengths() -> None:
    rng = np.random.default_rng(0)
    carat = rng.gamma(3.0, 0.3, 1500) + 0.2
    length = 6.4 * np.cbrt(carat)
    sizes = {
        name: share * length * (1 + 0.01 * rng.normal(size=1500))
        for name, share in (("x", 1.0), ("y", 1.0), ("z", 0.62))
    }
    price = 4000 * carat**1.6 * (1 + 0.1 * rng.normal(size=1500))
    cut = rng.choice(["Fair", "Good", "Ideal"], 1500)
    frame = pl.DataFrame({"carat": carat, "cut": cut, "price": price.round(), **sizes})
    wrong = carat.argsort()[[200, 500, 800, 1100, 1400]].tolist()
    zero = pl.Series(np.isin(np.arange(1500), wrong))
    frame = frame.with_columns(
        pl.when(zero).then(0.0).otherwise(pl.col(name)).alias(name) for name in ("x", "y", "z")
    )
    result = screen_table(frame)
    stones = [row for row in result.ranked if row.row - 1 in wrong]
    assert len(stones) == 5
    for row in stones:
        assert {reason.column for reason in row.reason_sets[0]} == {"x", "y", "z"}
        assert all(reason.together == ("x", "y", "z") for reason in row.reason_sets[0])
    (pattern,) = (p for p in result.patterns if p.columns == ("x", "y", "z"))
    assert pattern.sentence == '5 rows: "x", "y" and "z" all read 0.0.'
    assert len({row.kind_of_reason for row in result.oddest_of_each_kind}) == len(
        result.oddest_of_each_kind
    )
