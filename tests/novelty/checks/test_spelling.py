"""Rare levels are distinguished from misspelt ones."""

from collections.abc import Iterable

import numpy as np
import pytest

from kpca_apps.novelty.checks.cell_check import OddValue
from kpca_apps.novelty.checks.spelling import SpellingRule
from kpca_apps.novelty.columns.kinds import Notation
from kpca_apps.novelty.columns.plan import ColumnSpec
from kpca_apps.novelty.result import MISSPELT

COMMON = {"Office Supplies": 900, "Furniture": 700, "Technology": 400, "male": 300, "female": 300}


def one(rule: SpellingRule, level: str) -> str | None:
    """Return the suggested level if there is exactly one."""
    levels = rule.meant(level)
    return levels[0] if len(levels) == 1 else None


def meant(rule: SpellingRule, levels: Iterable[str]) -> dict[str, str]:
    """Map each misspelt level to its suggestion."""
    return {level: suggested for level in levels if (suggested := one(rule, level)) is not None}


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
    assert one(SpellingRule.fit(COMMON | {seen: 1}), seen) == meant
    # The rule does not change if the training rows lack the misspelt cell.
    assert one(SpellingRule.fit(COMMON), seen) == meant


@pytest.mark.parametrize(
    "counts",
    [
        {"room A1": 500, "room A2": 1, "other": 300},
        {"GasAir": 500, "GasWir": 1},
        {"EURO": 500, "EURA": 1},
        {"car": 500, "cat": 1},
        {"Anderson": 50, "Andersen": 40},
        # Most of the common levels differ by one letter, so levels are taken for codes, not words.
        {"stone": 400, "store": 300, "shore": 300, "score": 200, "scone": 1},
    ],
)
def test_codes_short_words_and_frequent_levels_are_left_alone(counts: dict[str, int]) -> None:
    assert meant(SpellingRule.fit(counts), counts) == {}


def test_another_case_is_reported_however_often_it_is() -> None:
    assert meant(SpellingRule.fit({"Yes": 500, "yes": 90}), ["Yes", "yes"]) == {"yes": "Yes"}


def test_a_letter_for_a_digit_and_lost_zeros_are_slips_of_codes() -> None:
    counts = {"038.9": 24, "250.00": 18, "250.02": 20, "I10": 30, "E11.9": 40, "A1": 30, "15": 40}
    slips = {"38.9": "038.9", "25O.00": "250.00", "I1O": "I10", "E1l.9": "E11.9", "E119": "E11.9"}
    rule = SpellingRule.fit(counts | dict.fromkeys(slips, 2))
    assert {level: one(rule, level) for level in slips} == slips
    # Other codes, and numbers of another magnitude, are not misspelt.
    others = ("250.01", "E11.8", "A2", "1.5", "150", "110", "038.8", "B12")
    rule = SpellingRule.fit(counts | dict.fromkeys(others, 2))
    assert not any(rule.meant(level) for level in others)


def test_an_ambiguous_level_is_no_misspelling() -> None:
    rule = SpellingRule.fit({"Roman": 60, "Greek": 50, "Roman?": 2, "Romn": 1})
    assert (one(rule, "Roman?"), one(rule, "Romn")) == (None, "Roman")


def test_a_letter_for_a_digit_is_a_slip_however_often_it_was_made() -> None:
    counts = {"I10": 120, "E11.9": 150, "I1O": 4, "E1l.9": 6, "J45": 220}
    rule = SpellingRule.fit(counts)
    assert {level: one(rule, level) for level in counts} == dict.fromkeys(counts) | {
        "I1O": "I10",
        "E1l.9": "E11.9",
    }


def test_a_frequent_code_is_one_of_its_own() -> None:
    counts = {"S50": 300, "SS0": 30, "V2.0": 300, "V20": 40, "1B08": 200, "1808": 20}
    rule = SpellingRule.fit(counts)
    assert not any(rule.meant(level) for level in counts)


def test_neither_of_two_equally_near_levels_is_suggested() -> None:
    others = ("Oxford", "Leeds", "Bristol", "Cardiff", "Durham", "Exeter", "Lincoln", "Norwich",
              "Salford", "Swansea", "Winchester", "Plymouth", "Coventry", "Carlisle", "Wakefield",
              "Gloucester", "Hereford", "Lancaster", "Peterborough")  # fmt: skip
    rule = SpellingRule.fit({"Marton": 90, "Merton": 80} | dict.fromkeys(others, 70))
    assert rule.meant("Mrton") == ["Marton", "Merton"]
    value = OddValue(MISSPELT, "Mrton", np.nan, 1)
    sentence = rule.explain(value, ColumnSpec("town", "categorical", ""), Notation())
    assert sentence == ('One slip from each of "Marton" and "Merton".', "")
