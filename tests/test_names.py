import json
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpca_apps import screen_table
from kpca_apps.names import (
    cut_apart,
    one_line,
    safe_stem,
    suggest,
    unique_names,
    visible,
    visible_json,
    without_passwords,
)
from kpca_apps.report.text import cut


@pytest.mark.release
@settings(max_examples=40)
@given(st.text(), st.integers(4, 100))
def test_one_line_is_one_short_printable_line(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert len(shown) <= limit and len(shown.splitlines()) <= 1
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x1f\x7f-\x9f]", shown)


@given(st.text(st.characters(categories=["L", "N", "P"]), max_size=80))
def test_one_line_leaves_plain_text_alone(text: str) -> None:
    assert one_line(text) == text


@given(st.text())
def test_safe_stem_is_a_plain_file_name(name: str) -> None:
    stem = safe_stem(name)
    assert 1 <= len(stem) <= 50
    assert re.fullmatch(r"[\w.-]+", stem)
    assert "--" not in stem and stem[0] not in ".-" and stem[-1] not in ".-"
    assert len(("kpca-novelty-" + stem).encode("utf-8")) <= 255


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("penguins.csv", "penguins"),
        ("C:\\data\\my sales (2024).XLSX", "my-sales-2024"),
        ("archive.tar.csv.gz", "archive.tar"),
        ("../../etc/passwd", "passwd"),
        ("größe.tsv", "größe"),
        (".csv", "table"),
        ("---", "table"),
        ("$(rm -rf ~).csv", "rm-rf"),
    ],
)
def test_safe_stem_examples(name: str, stem: str) -> None:
    assert safe_stem(name) == stem


def test_suggest_looks_past_case_and_spaces() -> None:
    assert suggest("SPECIES", [" Species"]) == ' Did you mean " Species"?'
    assert suggest("bod_mass", ["island", "body_mass_g"]) == ' Did you mean "body_mass_g"?'
    assert suggest("x", []) == ""
    assert "\n" not in suggest("height", ["height\n"])


@given(st.lists(st.sampled_from(["", " ", "x", "x_2", "column_1", "column_2", "y"]), max_size=8))
def test_unique_names_are_unique_and_change_no_more_than_needed(names: list[str]) -> None:
    result, notes, renamed = unique_names(names)
    assert len(result) == len(names) == len(set(result))
    assert all(name.strip() for name in result)
    assert len(notes) == sum(new != old for new, old in zip(result, names, strict=True))
    assert [renamed.get(new, new) for new in result] == names
    for name in {name for name in names if name.strip()}:
        assert result[names.index(name)] == name


def test_null_characters_in_names_become_underscores() -> None:
    names, notes, renamed = unique_names(["a\0b", "a_b"])
    assert (names, renamed) == (["a_b_2", "a_b"], {"a_b_2": "a\0b"})
    assert notes == ['Column 1 has the unusable name "a\\x00b" in the header: read as "a_b_2".']
    frame = pl.DataFrame({"a\0b": [1.0, 2.0, 4.0] * 20})
    assert screen_table(frame).columns[0].name == "a_b"


# The pages escape notes with a script of their own, which must agree with Python.
WRITTEN_OUT = [
    ("pay\u200bpal", r"pay\u200bpal"),
    ("a\ufeff\u2060\u00adb", r"a\ufeff\u2060\xadb"),
    ("\u3164", r"\u3164"),
    ("x\u202ey", r"x\u202ey"),
    ("e" + "\u0301" * 5, "e" + "\u0301" * 3 + r"\u0301\u0301"),
    ("m" + "\U0001e8d0" * 4, "m" + "\U0001e8d0" * 3 + r"\U0001e8d0"),
    ("\ud800", r"\ud800"),
]
LEFT_ALONE = ["Z\u00fcrich", "\u05e9\u05dc\u05d5\u05dd", "e\u0301", "\u0e17\u0e35\u0e48", "a b"]


@pytest.mark.parametrize(("text", "shown"), WRITTEN_OUT)
def test_invisible_characters_are_escaped_on_terminals_and_pages(text: str, shown: str) -> None:
    assert visible(text) == one_line(text) == cut(text) == shown


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_ordinary_text_is_left_unchanged(text: str) -> None:
    assert visible(text) == one_line(text) == cut(text) == text


@pytest.mark.parametrize("text", [*(text for text, _ in WRITTEN_OUT), *LEFT_ALONE])
def test_json_escapes_the_same_characters_and_round_trips(text: str) -> None:
    shown = visible_json(json.dumps({"a": text}, indent=1, ensure_ascii=False))
    assert json.loads(shown) == {"a": text}
    assert all(visible(line) == line for line in shown.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://ada:rosebud@db/shop", "postgresql:/ada:rosebud@db/shop",
        "jdbc:postgresql://ada:rosebud@db", "x postgresql://ada:rosebud@db",
        "\u200bpostgresql://ada:rosebud@db", "{'a': 'postgresql://ada:rosebud@db'}",
        "postgresql://ada:rosebud\uff20db", "--out=postgresql://ada:rosebud@db",
    ],
)  # fmt: skip
def test_a_password_is_taken_out_wherever_its_address_stands(text: str) -> None:
    assert "rosebud" not in without_passwords(text)
    assert "rosebud" not in without_passwords(one_line(without_passwords(text), 40))


def test_a_text_whose_start_differs_is_cut_at_its_end_alone() -> None:
    date = ("2009-11-31 (not a date)", "2009-11-15")
    assert cut_apart(*date, 20) == ("2009-11-31 (not a...", "2009-11-15")
    for same in range(40):  # the difference may be anywhere in the name
        seen, expected = cut_apart("n" * same + "a" * 40, "n" * same + "b" * 40, 20)
        assert "na" in f"n{seen}" and "nb" in f"n{expected}" and len(seen) <= 20
