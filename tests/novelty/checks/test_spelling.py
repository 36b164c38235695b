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


CODES = {"I10": 120, "E11.9": 150, "J45": 220}


@pytest.mark.parametrize(
    ("counts", "slips"),
    [
        ({"room A1": 500, "room A2": 1, "other": 300}, {}),
        ({"GasAir": 500, "GasWir": 1}, {}),
        ({"EURO": 500, "EURA": 1}, {}),
        ({"car": 500, "cat": 1}, {}),
        ({"Anderson": 50, "Andersen": 40}, {}),
        # Most of the common levels differ by one letter, so levels are taken for codes, not words.
        ({"stone": 400, "store": 300, "shore": 300, "score": 200, "scone": 1}, {}),
        ({"Yes": 500, "yes": 90}, {"yes": "Yes"}),
        ({"Roman": 60, "Greek": 50, "Roman?": 2, "Romn": 1}, {"Romn": "Roman"}),
        (CODES | {"I1O": 4, "E1l.9": 6}, {"I1O": "I10", "E1l.9": "E11.9"}),
        # A frequent code is one of its own.
        ({"S50": 300, "SS0": 30, "V2.0": 300, "V20": 40, "1B08": 200, "1808": 20}, {}),
    ],
)
def test_misspelt_levels_are_told_from_rare_ones(
    counts: dict[str, int], slips: dict[str, str]
) -> None:
    assert meant(SpellingRule.fit(counts), counts) == slips


def test_a_letter_for_a_digit_and_lost_zeros_are_slips_of_codes() -> None:
    counts = {"038.9": 24, "250.00": 18, "250.02": 20, "I10": 30, "E11.9": 40, "A1": 30, "15": 40}
    slips = {"38.9": "038.9", "25O.00": "250.00", "I1O": "I10", "E1l.9": "E11.9", "E119": "E11.9"}
    rule = SpellingRule.fit(counts | dict.fromkeys(slips, 2))
    assert {level: one(rule, level) for level in slips} == slips
    # Other codes, and numbers of another magnitude, are not misspelt.
    others = ("250.01", "E11.8", "A2", "1.5", "150", "110", "038.8", "B12")
    rule = SpellingRule.fit(counts | dict.fromkeys(others, 2))
    assert not any(rule.meant(level) for level in others)


def test_neither_of_two_equally_near_levels_is_suggested() -> None:
    others = ("Oxford", "Leeds", "Bristol", "Cardiff", "Durham", "Exeter", "Lincoln", "Norwich",
              "Salford", "Swansea", "Winchester", "Plymouth", "Coventry", "Carlisle", "Wakefield",
              "Gloucester", "Hereford", "Lancaster", "Peterborough")  # fmt: skip
    rule = SpellingRule.fit({"Marton": 90, "Merton": 80} | dict.fromkeys(others, 70))
    assert rule.meant("Mrton") == ["Marton", "Merton"]
    value = OddValue(MISSPELT, "Mrton", np.nan, 1)
    sentence = rule.explain(value, ColumnSpec("town", "categorical", ""), Notation())
    assert sentence == ('One slip from each of "Marton" and "Merton".', "")
