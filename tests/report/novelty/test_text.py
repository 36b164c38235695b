import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.novelty.redact import redact
from kpca_apps.novelty.result import Reason
from kpca_apps.report.novelty.text import headline, scores_text
from kpca_apps.report.text import (
    Verbatim,
    cut,
    in_prose,
    number,
    ordinal,
    percent,
    plural,
    writable,
)
from tests.novelty.tables import changed
from tests.report import examples


@given(st.floats(1e-8, 1e12) | st.floats(-1e12, -1e-8))
def test_numbers_read_back_to_three_digits(value: float) -> None:
    assert math.isclose(float(number(value).replace(",", "")), value, rel_tol=0.5e-2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (number(0.4), "0.4"),
        (number(0.4, keep_zeros=True), "0.400"),
        (number(999.6), "1,000"),
        (number(-math.inf), "minus infinite"),
        (number(math.nan), "not a number"),
        (percent(0.0), "0 %"),
        (percent(0.00001), "< 0.1 %"),
        (percent(0.123), "12 %"),
        (percent(1.0), "100 %"),
        (in_prose([]), ""),
        (in_prose(["a"]), "a"),
        (in_prose(["a", "b", "c"]), "a, b and c"),
        (" ".join(map(ordinal, (1, 2, 3, 11, 12, 13, 21, 112))),
         "1st 2nd 3rd 11th 12th 13th 21st 112th"),
        (", ".join(plural(n, "row") for n in (0, 1, 2_000)), "0 rows, 1 row, 2,000 rows"),
        (writable("a\udcffb"), "a?b"),
    ],
)  # fmt: skip
def test_small_words(text: str, expected: str) -> None:
    assert text == expected


@given(st.lists(st.floats(1e-3, 1e3), min_size=1), st.floats(1e-3, 1e3))
def test_rounded_scores_differ_from_the_threshold(scores: list[float], threshold: float) -> None:
    texts, limit = scores_text(scores, threshold)
    assert len({len(text.partition(".")[2]) for text in [*texts, limit]}) == 1
    largest = max(*scores, threshold)
    for score, text in zip(scores, texts, strict=True):
        assert float(text.replace(",", "")) == pytest.approx(score, abs=0.5e-2 * largest)
        if abs(score - threshold) > 1e-6 * largest:
            assert text != limit
    close = zip(sorted(scores), sorted(scores)[1:], strict=False)
    told_apart = sum(above - below > 1e-9 * largest for below, above in close)
    assert len(set(texts)) > told_apart


def test_scores_of_any_size_are_written_without_needless_decimals() -> None:
    assert scores_text([1.25 + 2e-16, 1.25, 1.1], 1.0)[0] == ["1.25", "1.25", "1.10"]
    assert scores_text([1.5e-9], math.inf) == (["1.50e-09"], "none")
    assert scores_text([0.0], 0.0) == (["0.00"], "0.00")
    assert scores_text([], 0.5) == ([], "0.500")


@given(st.text(), st.integers(2, 50))
def test_cut_text_is_one_short_line(text: str, length: int) -> None:
    short = cut(text, length)
    assert len(short) <= length and len(short.splitlines()) <= 1 and isinstance(short, Verbatim)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "usual",
            "12 of 344 rows stand out; N262A1 (line 264) most: its Flipper Length (mm) reads 1950 "
            "where about 195 was expected.",
        ),
        (
            "one",
            "1 of 344 rows stands out: N262A1 (line 264), whose Flipper Length (mm) reads 1950 "
            "where about 195 was expected.",
        ),
        (
            "none",
            "None of 344 rows stands out; N262A1 (line 264) comes nearest: its Flipper Length (mm) "
            "reads 1950 where about 195 was expected.",
        ),
        (
            "no_reasons",
            "1 of 344 rows stands out: row 263, though every column reads what the rows most like "
            "it do.",
        ),
        (
            "together",
            "12 of 344 rows stand out; N262A1 (line 264) most: its Culmen Length (mm), Species and "
            "Body Mass (g) together read 0, Gentoo and no value where about 39.1, Adelie and about "
            "3,810 were expected.",
        ),
        (
            "hidden",
            "12 of 344 rows stand out; row 263 (line 264) most, chiefly for its Flipper Length "
            "(mm), whose values are hidden.",
        ),
    ],
)
def test_the_first_sentence(name: str, sentence: str) -> None:
    assert "".join(headline(examples.SCREENINGS[name]())) == sentence


@pytest.mark.parametrize(
    ("n_rows", "n_flagged", "start"),
    [
        (1, 1, "The only row stands out: its "),
        (1, 0, "The only row does not stand out: its "),
        (2, 2, "Both rows stand out; N"),
        (2, 0, "Neither of 2 rows stands out; N"),
        (2, 1, "1 of 2 rows stands out: N"),
        (20, 20, "All 20 rows stand out; N"),
    ],
)
def test_the_first_sentence_of_a_small_table(n_rows: int, n_flagged: int, start: str) -> None:
    assert "".join(headline(examples.screening(n_rows, n_flagged))).startswith(start)


def test_the_first_sentence_when_the_one_flagged_row_is_odd_for_a_hidden_column() -> None:
    hidden = ("Flipper Length (mm)", "Individual ID")
    result = redact(changed(examples.screening(n_flagged=1), id_column="Individual ID"), hidden)
    assert "".join(headline(result)) == (
        "1 of 344 rows stands out: row 263 (line 264), chiefly for its Flipper Length (mm), whose "
        "values are hidden."
    )


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        (
            Reason("Sex", 1.0, "", "MALE", None, "MALE"),
            ": its Sex is missing where MALE was expected.",
        ),
        (
            Reason("Comments", 1.0, "Broken band", "(missing)", "Broken band", None),
            ": its Comments reads Broken band where no value was expected.",
        ),
        (
            Reason("note", 1.0, "N2A2", "about 5 characters"),
            ": its note reads N2A2 where text of about 5 characters was expected.",
        ),
    ],
)
def test_the_first_sentence_of_gaps_and_free_text(reason: Reason, end: str) -> None:
    result = examples.screening(reasons=(reason,))
    text = replace(result.columns[1], name="note", role="text", distribution=None)
    assert "".join(headline(replace(result, columns=(*result.columns, text)))).endswith(end)


def test_names_in_a_sentence_are_marked_as_the_tables_own() -> None:
    parts = headline(examples.hostile())
    assert sum(isinstance(part, Verbatim) for part in parts) == 4
    none = replace(examples.screening(n_flagged=0), ranked=())
    assert "".join(headline(none)) == "None of 344 rows stands out."
    rows = changed(none, flagged=examples.screening().ranked[:2])
    assert "".join(headline(rows)) == "None of 344 rows stands out, but 2 have an odd cell."


def test_the_first_sentence_says_why_nothing_can_be_flagged() -> None:
    result = examples.infinite_threshold()
    few = replace(result.threshold, rule="fdr", setting=0.05, n_calibration=12)
    assert "".join(headline(replace(result, threshold=few))).startswith(
        "Nothing can be flagged: 12 reference rows are too few for 5 % false discoveries (fdr); "
        "N262A1 (line 264) comes nearest: its "
    )
    rate = replace(few, rule="alpha", setting=0.01, n_calibration=1)
    assert "".join(headline(replace(result, threshold=rate))).startswith(
        "Nothing can be flagged: 1 reference row is too few for 1 % false alarms (alpha); "
    )
    # With enough reference rows, the sentence says that no row stands out.
    enough = replace(few, value=9.0)
    assert "".join(headline(replace(result, threshold=enough))).startswith("None of 344 rows stand")
