"""A rare level is told from a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpca_apps.novelty.checks.spelling import SpellingRule
from kpca_apps.novelty.relations.conditional.writing import edits

COMMON = {"Office Supplies": 900, "Furniture": 700, "Technology": 400, "male": 300, "female": 300}
WORDS = st.text("abcd", max_size=6)


def meant(rule: SpellingRule, levels: Iterable[str]) -> dict[str, str]:
    """Levels that are common ones mistyped, each with what was meant."""
    return {level: found for level in levels if (found := rule.meant(level)) is not None}


def distance(a: str, b: str) -> int:
    """Edits that make one word of another, by the textbook's table (optimal string alignment)."""
    table = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
            )
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


@given(a=WORDS, b=WORDS)
def test_one_edit_is_what_the_textbook_counts(a: str, b: str) -> None:
    assert edits(a, b, 1) == min(distance(a, b), 2)


@pytest.mark.parametrize(
    ("seen", "meant"),
    [
        ("Office Suplies", "Office Supplies"),
        ("Office Supplise", "Office Supplies"),
        ("Furnitures", "Furniture"),
        ("technology", "Technology"),
        ("OfficeSupplies", "Office Supplies"),
        ("Male", "male"),
        ("Paper", None),
        ("Technologies", None),
    ],
)
def test_a_rare_level_stands_for_the_common_one_next_to_it(seen: str, meant: str | None) -> None:
    assert SpellingRule.fit(COMMON | {seen: 1}).meant(seen) == meant
    # The same from rows drawn that have no such cell.
    assert SpellingRule.fit(COMMON).meant(seen) == meant


@pytest.mark.parametrize(
    "counts",
    [
        {"room A1": 500, "room A2": 1, "other": 300},
        {"GasAir": 500, "GasWir": 1},
        {"EURO": 500, "EURA": 1},
        {"car": 500, "cat": 1},
        {"Anderson": 50, "Andersen": 40},
        # One in ten of the common levels has a neighbour: these are no words.
        {"stone": 400, "store": 300, "shore": 300, "score": 200, "scone": 1},
    ],
)
def test_codes_short_words_and_frequent_levels_are_left_alone(counts: dict[str, int]) -> None:
    rule = SpellingRule.fit(counts)
    assert meant(rule, counts) == {}


def test_another_case_is_told_however_often_it_is() -> None:
    assert meant(SpellingRule.fit({"Yes": 500, "yes": 90}), ["Yes", "yes"]) == {"yes": "Yes"}


def test_a_letter_for_a_digit_and_lost_zeros_are_slips_of_codes() -> None:
    counts = {"038.9": 24, "250.00": 18, "250.02": 20, "I10": 30, "E11.9": 40, "A1": 30, "15": 40}
    slips = {"38.9": "038.9", "25O.00": "250.00", "I1O": "I10", "E1l.9": "E11.9", "E119": "E11.9"}
    rule = SpellingRule.fit(counts | dict.fromkeys(slips, 2))
    assert {level: rule.meant(level) for level in slips} == slips
    # Other codes, and numbers of another size, are none.
    others = ("250.01", "E11.8", "A2", "1.5", "150", "110", "038.8", "B12")
    rule = SpellingRule.fit(counts | dict.fromkeys(others, 2))
    assert not any(rule.meant(level) for level in others)


def test_a_doubt_is_no_slip() -> None:
    rule = SpellingRule.fit({"Roman": 60, "Greek": 50, "Roman?": 2, "Romn": 1})
    assert (rule.meant("Roman?"), rule.meant("Romn")) == (None, "Roman")


def test_a_letter_for_a_digit_is_a_slip_however_often_it_was_made() -> None:
    counts = {"I10": 120, "E11.9": 150, "I1O": 4, "E1l.9": 6, "J45": 220}
    rule = SpellingRule.fit(counts)
    assert {level: rule.meant(level) for level in counts} == dict.fromkeys(counts) | {
        "I1O": "I10",
        "E1l.9": "E11.9",
    }


def test_a_frequent_code_is_one_of_its_own() -> None:
    counts = {"S50": 300, "SS0": 30, "V2.0": 300, "V20": 40, "1B08": 200, "1808": 20}
    rule = SpellingRule.fit(counts)
    assert not any(rule.meant(level) for level in counts)
