"""Rules round-trip through a file; no other file is read as rules or replaced."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from kpca_apps.errors import InputError, RefusedError
from kpca_apps.novelty.relations.rule import (
    HeldRule,
    HeldRules,
    Linear,
    Order,
    RuleColumn,
    Unique,
    without_values,
)
from kpca_apps.novelty.relations.rule_file import (
    check_target,
    read_rules,
    rules_to_json,
    save_rules,
)
from kpca_apps.tables.values import DateFormat, NumberFormat
from tests.novelty.relations.ruled import as_texts, held, ruled_frame


def test_rules_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    for frame in (ruled_frame(), as_texts(ruled_frame())):
        rules = held(frame)
        save_rules(rules, path)
        assert read_rules(path) == rules
        assert path.read_text("utf-8") == rules_to_json(read_rules(path))
    assert json.loads(path.read_text("utf-8"))["rules"][3]["says"].startswith("start <= end in 1")


def test_the_way_columns_are_written_comes_back(tmp_path: Path) -> None:
    german = NumberFormat(decimal=",", thousands=".", units=("€", ""), word="kg")
    columns = (
        RuleColumn("a", numbers=german),
        RuleColumn("b", numbers=NumberFormat(clock=True)),
        RuleColumn("c", dates=DateFormat(day_first=True, decided_by="cells"), typed=True),
    )
    rule = Linear(columns=("a", "b", "c"), coefficients=(0.1, -1e-17), tolerance=1 / 3)
    rules = HeldRules("t.csv", 9, columns, (HeldRule(rule, 9, 1, (4,)),), id="ä")
    save_rules(rules, tmp_path / "r.json")
    assert read_rules(tmp_path / "r.json") == rules
    assert [column.is_plain for column in columns] == [False, True, True]


def test_a_file_written_by_hand_needs_no_counts(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(
        '{"format": "kpca-rules", "format_version": 1,'
        ' "columns": [{"name": "from", "dates": {}}, {"name": "to", "dates": {}}],'
        ' "rules": [{"rule": {"kind": "order", "columns": ["from", "to"]}}]}',
        encoding="utf-8",
    )
    rules = read_rules(path)
    assert rules.rules == (HeldRule(Order(columns=("from", "to")), 0, 0),)
    assert rules.columns == tuple(RuleColumn(name, dates=DateFormat()) for name in ("from", "to"))


@pytest.mark.parametrize("kind", ["table", "folder", "link", "text", "rules"])
def test_nothing_but_rules_is_replaced(kind: str, tmp_path: Path) -> None:
    rules = HeldRules("t", 3, (RuleColumn("a"),), (HeldRule(Unique(columns=("a",)), 3, 0),))
    path, other = tmp_path / "out", tmp_path / "other"
    save_rules(rules, other)
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(other)
    elif kind == "rules":
        save_rules(rules, path)
        check_target(path, force=True)
        with pytest.raises(RefusedError, match="exists already; replace it with --force"):
            check_target(path)
        return
    else:
        path.write_text("a,b\n1,2\n" if kind == "table" else "")
    with pytest.raises(RefusedError, match="is not a file of rules, so it is never replaced"):
        save_rules(rules, path)
    check_target(tmp_path / "new")
    with pytest.raises(InputError, match="its folder does not exist"):
        check_target(tmp_path / "no" / "new")


def test_rules_that_quote_hidden_values_are_left_out() -> None:
    rules = held(ruled_frame())
    kept = without_values(replace(rules, hidden=("sex", "net")))
    # Rules of these kinds quote a hidden value, or are formulas from which hidden values follow.
    quoting = {"empty unless", "positive only if", "within", "equal", "linear", "product"}
    left = [held for held in rules.rules if held not in kept.rules]
    assert {msgspec.to_builtins(held.rule)["kind"] for held in left} == quoting
    assert kept.notes == (f"{len(left)} rules are left out for quoting values of hidden columns.",)
    assert without_values(rules) == rules
