"""A column is a code if nearly all check digits hold; cells that break them are odd."""

import re

import numpy as np
import polars as pl
import pytest

from kpca_apps import screen_table
from kpca_apps.novelty.columns.check_digits import check_digits_of

# Published examples of each kind of code.
KNOWN = {
    "EAN": ["4006381333931", "5901234123457", "96385074", "036000291452", "36000291452"],
    "Luhn": ["4539 1488 0343 6467", "79927398713", "490154203237518"],
    "ISBN": ["0-306-40615-2", "080442957X", "3\u201316\u2013148410\u2013X", "978-0-306-40615-7"],
    "IBAN": ["GB29 NWBK 6016 1331 9268 19", "DE89370400440532013000", "NO9386011117947"],
}


def ean(start: int) -> str:
    digits = [int(digit) for digit in f"4{start:011d}"]
    return f"4{start:011d}{-(sum(digits[::2]) + 3 * sum(digits[1::2])) % 10}"


CODES = [ean(int(n)) for n in np.random.default_rng(0).integers(0, 10**11, 220)]


@pytest.mark.parametrize(("scheme", "codes"), KNOWN.items())
def test_check_digits_are_computed_as_published(scheme: str, codes: list[str]) -> None:
    def spaced(texts: list[str]) -> pl.Series:
        return pl.Series([text + " " * n for n in range(9) for text in texts])

    assert check_digits_of(spaced(codes)) == scheme
    plain = [re.sub("[-\u2013]", "", code) for code in codes]
    wrong = [code[:-2] + str((int(code[-2]) + 1) % 10) + code[-1] for code in plain]
    assert check_digits_of(spaced(codes + wrong)) == ""


def test_codes_that_became_floats_are_codes() -> None:
    assert check_digits_of(pl.Series([f"{code}.0" for code in CODES])) == "EAN"


def test_numbers_that_hold_by_chance_are_no_codes() -> None:
    rng = np.random.default_rng(1)
    for low, high in ((10**7, 10**8), (10**12, 10**13), (10**14, 10**15)):
        assert check_digits_of(pl.Series(rng.integers(low, high, 500).astype(str))) == ""


@pytest.mark.parametrize("repeated", [False, True])
def test_a_wrong_code_is_an_odd_cell_without_a_suggestion(repeated: bool) -> None:
    rng = np.random.default_rng(2)
    codes = list(rng.choice(CODES[:40], 220)) if repeated else [*CODES]
    codes[10], codes[20], codes[30] = "4.00928E+12", codes[20][:-1], f"{int(codes[30]) + 1}"
    price = rng.lognormal(1, 0.3, 220).round(2).tolist()
    price[50] *= 100
    frame = pl.DataFrame({"ean": codes, "price": price, "stock": rng.integers(10, 90, 220)})
    screening = screen_table(frame)
    odd = {c.row: (c.column, c.kind, c.suggestion) for c in screening.findings.odd_cells}
    assert {row: odd.pop(row) for row in (11, 21, 31)} == dict.fromkeys(
        (11, 21, 31), ("ean", "code", "")
    )
    assert odd.keys() == {51}
    # A column of codes is an identifier, whether the codes repeat or not.
    assert {c.name: c.role for c in screening.columns}["ean"] == "identifier"
    assert not any('"ean" fits' in hint for row in screening.ranked for hint in row.hints)


def test_digits_of_other_scripts_are_no_codes() -> None:
    for zero in "\u0660\uff10":  # Arabic-Indic and full-width
        other = [code.translate({ord("0") + i: ord(zero) + i for i in range(10)}) for code in CODES]
        assert check_digits_of(pl.Series(other)) == ""
        stock = np.random.default_rng(3).integers(10, 90, len(CODES))
        screening = screen_table(pl.DataFrame({"code": [*CODES[:-9], *other[-9:]], "stock": stock}))
        odd = {cell.row for cell in screening.findings.odd_cells if cell.column == "code"}
        assert odd == set(range(len(CODES) - 8, len(CODES) + 1))
