"""Any rule file is read as expected or refused in one line."""

import copy
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from kpca_apps.denoise.batch.profile import read_profile
from kpca_apps.errors import InputError, RefusedError
from kpca_apps.novelty.accepted import read_marks
from kpca_apps.novelty.compare.diff import diff_runs
from kpca_apps.novelty.relations import rule_file
from kpca_apps.novelty.relations.rule_file import check_target, read_rules, rules_to_json
from tests.novelty.relations.ruled import held, ruled_frame

GOOD: dict[str, Any] = {
    "format": "kpca-rules",
    "format_version": 1,
    "columns": [{"name": "a", "numbers": {}}, {"name": "b", "dates": {}}, {"name": "t"}],
    "rules": [{"rule": {"kind": "order", "columns": ["a", "b"]}, "n_rows": 5, "n_broken": 1}],
}


def changed(**parts: Any) -> dict[str, Any]:
    return copy.deepcopy(GOOD) | parts


def rule(kind: str, *columns: str, **more: Any) -> dict[str, Any]:
    return changed(rules=[{"rule": {"kind": kind, "columns": columns, **more}}])


def column(**more: Any) -> dict[str, Any]:
    return changed(columns=[{"name": "a", "numbers": {}}, {"name": "b", **more}, {"name": "t"}])


BROKEN: dict[str, tuple[Any, str]] = {
    "nothing": (b"", "truncated"),
    "no JSON": (b"a,b\n1,2\n", "malformed"),
    "no UTF-8": (b'{"format": "\xff"}', "utf-8"),
    "a list": ([], "Expected `object`, got `array`"),
    "deep": (b"[" * 100_000, "Expected `object`"),
    "deeper": (b'{"format": ' + b"[" * 100_000, "Expected `str`"),
    "deepest": (b'{"x": ' + b'{"x": ' * 100_000, ""),
    "another format": (changed(format="kpca-model"), "was not written by this toolkit"),
    "a newer version": (changed(format_version=2), "format 2, where this version reads format 1"),
    "no rules": ({k: v for k, v in GOOD.items() if k != "rules"}, "missing required field `rules`"),
    "something more": (changed(extra=1), "unknown field `extra`"),
    "rows of text": (changed(n_rows="5"), "Expected `int`, got `str` - at `$.n_rows`"),
    "a negative number": (changed(n_rows=-1), "Expected `int` >= 0"),
    "a kind that is none": (rule("magic", "a", "b"), "Invalid value 'magic' - at `$.rules[0].rule"),
    "a slip in a name": (rule("order", "a", "b", strickt=True), "unknown field `strickt`"),
    "one column too few": (
        rule("order", "a"),
        "Expected `array` of length 2 - at `$.rules[0]",
    ),
    "no number": (rule("linear", "a", "b", coefficients=[True]), "Expected `float`, got `bool`"),
    "no text": ("\ufeff{}".encode("utf-16-le")[:-1], "line 1, byte 5 (0x7d) is not utf-16 text"),
    "no column": (rule("unique"), "Expected `array` of length >= 1"),
    "a column twice": (rule("order", "a", "a"), "rule 1: it names a column twice"),
    "an unknown column": (rule("order", "a", "c"), 'its column "c" is not among the columns'),
    "text in order": (rule("order", "a", "t"), 'its column "t" holds no numbers or dates'),
    "text in a sum": (
        rule("linear", "a", "b", "t", coefficients=[1, 1]),
        'its column "t" holds no',
    ),
    "coefficients": (rule("linear", "a", "b", coefficients=[1, 1]), "one coefficient is needed"),
    "exponents": (rule("product", "a", "b", exponents=[]), "one exponent is needed"),
    "a huge number": (
        json.dumps(rule("linear", "a", "b", coefficients=[7])).replace("[7]", "[1e999]").encode(),
        "out of range",
    ),
    "no value": (rule("positive only if", "a", "t", values=[]), "Expected `array` of length >= 1"),
    "an empty form": (rule("code", "t", form=""), "its form has"),
    "a form of letters": (rule("code", "t", form="B-7"), "letters other than A, or digits other"),
    "no bounds": (rule("within", "a"), "its bounds allow nothing, or everything"),
    "bounds exchanged": (rule("within", "a", low=2, high=1), "its bounds allow nothing"),
    "too many broken": (
        changed(rules=[GOOD["rules"][0] | {"n_broken": 6}]),
        "rule 1: more rows break it than it applies to",
    ),
    "row 0": (changed(rules=[GOOD["rules"][0] | {"broken": [0]}]), "Expected `int` >= 1"),
    "two of one name": (changed(columns=[{"name": "a"}, {"name": "a"}]), "two columns of one name"),
    "numbers and dates": (column(numbers={}, dates={}), 'column "b" holds numbers and dates'),
    "a strange mark": (column(numbers={"decimal": "x"}), 'column "b": no numbers are written'),
    "one mark for two": (column(numbers={"decimal": ",", "thousands": ","}), "no numbers are"),
    "a mark": (column(numbers={"marks": ["(("]}), 'column "b": no numbers are marked so'),
    "a long unit": (column(numbers={"word": "m" * 50}), 'column "b": no unit is so long'),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    content, words = BROKEN[name]
    path = tmp_path / "rules\n.json"
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(InputError) as caught:
        read_rules(path)
    message = str(caught.value)
    assert words in message and "rules\\n.json" in message and message.isprintable()
    assert len(message) < 700


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_good_file_is_read_and_known_as_ours(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(GOOD), encoding=encoding)
    assert len(read_rules(path).rules) == 1
    with pytest.raises(RefusedError, match="exists already"):
        check_target(path)
    check_target(path, force=True)


def test_paths_that_are_no_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "rules.json").write_text(json.dumps(GOOD), encoding="utf-8")
    for name, words in (
        ("pipe", "a file of rules must be a plain file"),
        ("rule.json", 'no such file. Did you mean "rules.json"?'),
        ("", "must be a plain file"),
        ("a\0b", "cannot be read"),
        ("x" * 300, "cannot be read"),
    ):
        with pytest.raises(InputError, match=words.replace("?", r"\?")):
            read_rules(tmp_path / name)
    for read, what in ((read_marks, "a page or list of marks"), (read_profile, "a noise profile")):
        with pytest.raises(InputError, match=f"{what} must be a plain file of less"):
            read(tmp_path / "pipe")
    (tmp_path / "run").mkdir()
    os.mkfifo(tmp_path / "run" / "result.json")
    with pytest.raises(InputError, match=r"its result\.json is not a file"):
        diff_runs(tmp_path / "run", tmp_path / "run")
    monkeypatch.setattr(rule_file, "LARGEST", 100)
    with pytest.raises(InputError, match="a file of rules must be a plain file of less than"):
        read_rules(tmp_path / "rules.json")


def test_too_many_rules_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_file, "_MOST_RULES", 3)
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(changed(rules=GOOD["rules"] * 4)), encoding="utf-8")
    with pytest.raises(InputError, match="4 rules, of at most 3"):
        read_rules(path)


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    data, path = rules_to_json(held(ruled_frame(60))).encode(), tmp_path / "rules.json"
    draw = random.Random(0)
    for _ in range(400):
        damaged = bytearray(data)
        for _ in range(draw.choice((1, 1, 3))):
            place = draw.randrange(len(damaged))
            damaged[place : place + draw.randrange(2)] = draw.randbytes(draw.randrange(3))
        path.write_bytes(damaged)
        try:
            read_rules(path)
        except InputError as error:
            assert str(error).isprintable()
