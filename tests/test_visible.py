"""Nothing of a text from outside is out of sight."""

import pytest

from kpca_apps.files.names import one_line
from kpca_apps.report.text import cut
from kpca_apps.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay\u200bpal", r"pay\u200bpal"),
        ("a\ufeff\u2060\u00adb", r"a\ufeff\u2060\xadb"),
        ("\u3164", r"\u3164"),
        ("x\u202ey", r"x\u202ey"),
        ("e" + "\u0301" * 5, "e" + "\u0301" * 3 + r"\u0301\u0301"),
        ("\ud800", r"\ud800"),
    ],
)
def test_what_no_one_sees_is_written_out_on_terminals_and_pages(text: str, shown: str) -> None:
    assert visible(text) == one_line(text) == cut(text) == shown


@pytest.mark.parametrize(
    "text",
    ["Z\u00fcrich", "\u05e9\u05dc\u05d5\u05dd", "e\u0301", "\u0e17\u0e35\u0e48", "a b"],
)
def test_what_people_write_is_left_alone(text: str) -> None:
    assert visible(text) == one_line(text) == cut(text) == text
