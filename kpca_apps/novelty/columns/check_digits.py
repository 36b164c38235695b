"""Recognise codes with check digits: article, card, book and bank account numbers.

One random number in ten has a valid check digit, so a column holds codes if nearly all are valid.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from kpca_apps.system.arrays import BoolArray, IntArray

MIN_CODES, N_SAMPLED = 15, 2_000
SHORTEST = 8  # minimum number of digits of a code
HOLDS = 0.9  # minimum share of codes with valid check digits


def _mod_10(digits: IntArray) -> BoolArray:
    products = digits * np.where(np.arange(digits.shape[1])[::-1] % 2, 3, 1)
    return np.asarray(products.sum(axis=1) % 10 == 0)


def _luhn(digits: IntArray) -> BoolArray:
    products = digits * np.where(np.arange(digits.shape[1])[::-1] % 2, 2, 1)
    return np.asarray((products - 9 * (products > 9)).sum(axis=1) % 10 == 0)


def _mod_11(digits: IntArray) -> BoolArray:
    digits = np.where(digits == ord("X") - ord("A") + 10, 10, digits)
    return np.asarray((digits * np.arange(digits.shape[1], 0, -1)).sum(axis=1) % 11 == 0)


def _isbn(digits: IntArray) -> BoolArray:
    return _mod_11(digits) if digits.shape[1] == 10 else _mod_10(digits)


def _mod_97(digits: IntArray) -> BoolArray:
    rest = np.zeros(len(digits), dtype=np.int64)
    for place in np.roll(digits, -4, axis=1).T:  # move the country and the check digits to the end
        rest = (rest * np.where(place > 9, 100, 10) + place) % 97
    return np.asarray(rest == 1)


# For each scheme: the pattern of a code without spaces and hyphens, and the test of the digits (n,
# k) of n codes; letters count as numbers from A = 10. Polars' `\d` matches any Unicode digit.
SCHEMES: dict[str, tuple[str, Callable[[IntArray], BoolArray]]] = {
    "EAN": (r"^[0-9]{8,14}$", _mod_10),  # a UPC may have lost leading zeros
    "Luhn": (r"^[0-9]{8,19}$", _luhn),
    "ISBN": (r"^(?:[0-9]{9}[0-9X]|97[89][0-9]{10})$", _isbn),
    "IBAN": (r"^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$", _mod_97),
}
ANY_CODE = r"^[0-9A-Z]{8,34}$"


def check_digits_of(texts: pl.Series) -> str:
    """Return the scheme by which nearly all distinct texts are valid codes, or an empty text.

    >>> check_digits_of(pl.Series([f"{i:07d}{-(3 * (i % 10) + i // 10) % 10}" for i in range(20)]))
    'EAN'
    """
    texts = texts.head(N_SAMPLED)
    # Skip columns of short texts early: the codes of all schemes have 8 characters or more.
    if len(texts) < MIN_CODES or (texts.str.len_bytes() >= SHORTEST).sum() < HOLDS * len(texts):
        return ""
    codes = without_marks(texts)
    if codes.str.contains(ANY_CODE).sum() < HOLDS * len(codes):
        return ""
    shares = {name: float(check_digits_hold(codes, name).mean()) for name in SCHEMES}
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= HOLDS else ""


def without_marks(texts: pl.Series) -> pl.Series:
    """Convert codes to upper case; remove spaces, hyphens and the ".0" of a float."""
    plain = texts.str.replace_all(r"[\s\p{Pd}\x{2212}]", "").str.to_uppercase()
    return plain.str.replace(r"^([0-9]+)\.0$", "$1")


def check_digits_hold(codes: pl.Series, scheme: str) -> BoolArray:
    """Return whether codes (n,) from `without_marks` have valid check digits."""
    form, rule = SCHEMES[scheme]
    lengths = np.where(codes.str.contains(form).to_numpy(), codes.str.len_chars().to_numpy(), 0)
    found = np.zeros(len(codes), dtype=bool)
    for length in np.unique(lengths[lengths > 0]).tolist():
        rows = np.flatnonzero(lengths == length)
        letters = np.frombuffer("".join(codes.gather(rows)).encode("ascii"), dtype=np.uint8)
        places = letters.reshape(-1, length).astype(np.int64)
        found[rows] = rule(np.where(places > ord("9"), places - ord("A") + 10, places - ord("0")))
    return found
