"""Texts that lack the form of nearly all cells of their column are odd."""

import numpy as np
import polars as pl
import pytest

from kpca_apps.novelty.checks.odd_cells import CellFaults, cell_rules
from kpca_apps.novelty.columns.plan import infer_plan
from kpca_apps.tables.frames import table_from_frame

WORDS = "amber birch cedar delta ember fjord grove heath inlet larch maple north ocean".split()


def found(texts: list[str]) -> list[tuple[str, str]]:
    """Return the odd values of a single column and their kinds."""
    table = table_from_frame(pl.DataFrame({"text": texts}), "table")
    plan = infer_plan(table)
    odd = CellFaults.of(table, plan, cell_rules(table, plan, len(texts))).odd
    return odd.select("kind", "seen").rows()


def names(n: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [f"{a} {b} {k}" for k, (a, b) in enumerate(rng.choice(WORDS, (n, 2)).tolist())]


URLS = [f"https://{name.replace(' ', '.')}.org/x" for name in names(500)]
MAILS = [f"{name.replace(' ', '')}@example.org" for name in names(500)]
TIMES = [f"{k % 12 + 8}:{k % 6}0-{k % 9 + 12}:{k % 4 + 1}5" for k in range(500)]
TITLES = [f"{name.replace(' ', ' of ').rstrip('0123456789')} {'ab' * (k % 7 + 1)}"
          for k, name in enumerate(names(500))]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "wrong", "kind"),
    [
        (URLS, "birch.maple.org/x", "form"),
        (MAILS, "birchmaple.example.org", "form"),
        (TIMES, "12.:30-13:30", "form"),
        (TITLES, "17", "form"),
        (TITLES, "tbd", "placeholder"),
    ],
)
def test_one_of_five_hundred_that_breaks_the_form_is_found(
    texts: list[str], wrong: str, kind: str
) -> None:
    assert found(texts) == []
    assert found([*texts[:77], wrong, *texts[77:]]) == [(kind, wrong)]


def test_a_number_is_a_title_where_others_hold_numbers_among_letters() -> None:
    numbered = [*TITLES[:480], *(f"{title} {k}" for k, title in enumerate(TITLES[480:]))]
    assert found([*numbered[:77], "1941", *numbered[77:]]) == []
    assert found([*numbered[:77], "~", *numbered[77:]]) == [("form", "~")]


def test_recurring_texts_and_initials_are_not_odd() -> None:
    counts = [*["2-10"] * 700, *["11-99"] * 500, *["1"] * 300]
    assert found([*counts, *["Over 100"] * 3]) == []
    assert found([*counts, ":-10"]) == [("form", ":-10")]
    assert found([*TITLES, "X"]) == [] and found([*TITLES, "x"]) == [("placeholder", "x")]


def test_what_a_tenth_of_the_cells_lack_is_no_error() -> None:
    mixed = [text.removeprefix("https://") if k % 10 == 0 else text for k, text in enumerate(URLS)]
    assert found(mixed) == []


@pytest.mark.parametrize("seed", range(5))
def test_random_texts_have_no_odd_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    letters = list("abcdefghij klmno-.'0123")
    texts = ["".join(rng.choice(letters, rng.integers(3, 25))) for _ in range(600)]
    assert found([f"w{text}" for text in texts]) == []


@pytest.mark.parametrize(("n", "n_other"), [(250, 1), (400, 2)])
def test_a_form_that_one_of_200_have_is_no_error(n: int, n_other: int) -> None:
    others = [f"{name.replace(' ', '.')} without" for name in names(n_other, seed=1)]
    assert found([*MAILS[:n], *others]) == []


def test_letters_that_are_codes_stand_for_nothing() -> None:
    rng = np.random.default_rng(4)
    assert found(rng.choice(["E", "A", "S", "N"], 800, p=[0.4, 0.4, 0.198, 0.002]).tolist()) == []
    assert found([*rng.choice(["open", "closed"], 800).tolist(), *["unknown"] * 40]) == []
