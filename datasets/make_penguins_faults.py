"""Plant thirteen faults of the kind people make in the raw penguins table.

Run ``python datasets/make_penguins_faults.py`` to write ``penguins_faults.csv`` and
``penguins_faults.json`` again, byte for byte. The kinds were chosen from what goes wrong when
field sheets are typed in; which rows they hit is drawn with a fixed seed. Neither was changed
after a detector had seen the table.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SEED = 344

Row = dict[str, str]
Fault = dict[str, object]

SPECIES, ISLAND, SEX, DATE = "Species", "Island", "Sex", "Date Egg"
LENGTH, DEPTH = "Culmen Length (mm)", "Culmen Depth (mm)"
FLIPPER, MASS, CARBON = "Flipper Length (mm)", "Body Mass (g)", "Delta 13 C (o/oo)"
ADELIE = "Adelie Penguin (Pygoscelis adeliae)"
CHINSTRAP = "Chinstrap penguin (Pygoscelis antarctica)"
GENTOO = "Gentoo penguin (Pygoscelis papua)"


def _any(_: Row) -> bool:
    return True


def _digits_can_be_swapped(row: Row) -> bool:
    return row[LENGTH][0] != row[LENGTH][1]


# kind, what happened, which rows it can happen to, and the cells it changes
PLAN: tuple[tuple[str, str, Callable[[Row], bool], Callable[[Row], Row]], ...] = (
    (
        "unit slip",
        "the flipper was measured in centimetres",
        _any,
        lambda row: {FLIPPER: f"{float(row[FLIPPER]) / 10:g}"},
    ),
    (
        "unit slip",
        "the bird was weighed in kilograms",
        _any,
        lambda row: {MASS: f"{float(row[MASS]) / 1000:g}"},
    ),
    (
        "swapped columns",
        "culmen length and depth stand in each other's column",
        _any,
        lambda row: {LENGTH: row[DEPTH], DEPTH: row[LENGTH]},
    ),
    (
        "digit too many",
        "the second digit of the flipper length was typed twice",
        _any,
        lambda row: {FLIPPER: row[FLIPPER][:2] + row[FLIPPER][1:]},
    ),
    (
        "decimal shift",
        "the decimal point of the culmen depth was lost",
        lambda row: "." in row[DEPTH],
        lambda row: {DEPTH: row[DEPTH].replace(".", "")},
    ),
    (
        "transposed digits",
        "the first two digits of the culmen length changed places",
        _digits_can_be_swapped,
        lambda row: {LENGTH: row[LENGTH][1] + row[LENGTH][0] + row[LENGTH][2:]},
    ),
    (
        "lost sign",
        "the minus sign of the carbon isotope ratio is missing",
        _any,
        lambda row: {CARBON: row[CARBON].removeprefix("-")},
    ),
    (
        "impossible date",
        "November has no 31st day",
        lambda row: "-11-" in row[DATE],
        lambda row: {DATE: row[DATE][:8] + "31"},
    ),
    (
        "wrong century",
        "the year was typed with 19 in front",
        _any,
        lambda row: {DATE: "19" + row[DATE][2:]},
    ),
    (
        "category in the wrong place",
        "Gentoo penguins breed on Biscoe only, the sheet says Torgersen",
        lambda row: row[SPECIES] == GENTOO,
        lambda row: {ISLAND: "Torgersen"},
    ),
    (
        "wrong category",
        "a Chinstrap penguin was entered as an Adelie",
        lambda row: row[SPECIES] == CHINSTRAP,
        lambda row: {SPECIES: ADELIE},
    ),
    (
        "misspelt category",
        "two letters of the island's name changed places",
        lambda row: row[ISLAND] == "Dream",
        lambda row: {ISLAND: "Draem"},
    ),
    (
        "wrong category",
        "a male Gentoo was entered as a female",
        lambda row: row[SPECIES] == GENTOO and row[SEX] == "MALE",
        lambda row: {SEX: "FEMALE"},
    ),
)


def plant(raw: str) -> tuple[str, list[Fault]]:
    """Return the table's text with the faults in it, and the list of faults in row order."""
    reader = csv.DictReader(io.StringIO(raw))
    columns = list(reader.fieldnames or ())
    rows = list(reader)
    draw = random.Random(SEED)
    measured = (LENGTH, DEPTH, FLIPPER, MASS, SEX, CARBON)
    free = {i for i, row in enumerate(rows) if all(row[name] != "NA" for name in measured)}
    faults: list[Fault] = []
    for kind, story, possible, change in PLAN:
        candidates = [i for i in sorted(free) if possible(rows[i])]
        # random() is the one draw whose sequence Python promises to keep
        i = candidates[int(draw.random() * len(candidates))]
        free.remove(i)
        after = change(rows[i])
        before = {name: rows[i][name] for name in after}
        rows[i].update(after)
        cells = [{"column": c, "before": before[c], "after": after[c]} for c in after]
        # no cell of this table holds a line break, so row i stands on line i + 2
        faults.append({"row": i + 1, "line": i + 2, "kind": kind, "what": story, "cells": cells})
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue(), sorted(faults, key=lambda fault: int(str(fault["row"])))


def files() -> dict[str, str]:
    """Return the files this script makes: name -> text."""
    text, faults = plant((FOLDER / "penguins_raw.csv").read_text(encoding="utf-8"))
    return {
        "penguins_faults.csv": text,
        "penguins_faults.json": json.dumps(faults, indent=1, ensure_ascii=False) + "\n",
    }


if __name__ == "__main__":
    for name, content in files().items():
        (FOLDER / name).write_text(content, encoding="utf-8", newline="\n")
