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


def drawn(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    letters = list("abcdefghij klmno-.'0123")
    return ["w" + "".join(rng.choice(letters, rng.integers(3, 25))) for _ in range(600)]


OTHERS = [f"{name.replace(' ', '.')} without" for name in names(2, seed=1)]
ORDINARY = {
    "a tenth lacks the start": [
        text.removeprefix("https://") if k % 10 == 0 else text for k, text in enumerate(URLS)
    ],
    "one of 250 has another form": [*MAILS[:250], *OTHERS[:1]],
    "two of 400 have another form": [*MAILS[:400], *OTHERS],
    "letters that are codes": [*"EAS" * 270, *"NN"],
    "a word for unknown": [*["open", "closed"] * 400, *["unknown"] * 40],
    **{f"drawn texts {seed}": drawn(seed) for seed in range(5)},
}


@pytest.mark.parametrize("texts", ORDINARY.values(), ids=ORDINARY.keys())
def test_ordinary_texts_are_not_odd(texts: list[str]) -> None:
    assert found(texts) == []
