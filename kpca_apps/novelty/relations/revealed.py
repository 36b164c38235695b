"""Hidden columns that visible columns reveal by rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kpca_apps.names import quoted
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec
from kpca_apps.novelty.relations.finding.discovery import find_rules
from kpca_apps.novelty.relations.rule import AnyRule, Determines, Equal, Formula, HeldRule
from kpca_apps.novelty.result import REVEALED
from kpca_apps.tables.table import Table

_LEFT_OUT = ("excluded", "label")  # roles of visible columns in which no rules are sought
_SHOWN_WAYS = 4  # maximum number of sets of columns shown in a note


def revealed_notes(
    table: Table, plan: ColumnPlan, held: Sequence[HeldRule], seed: int
) -> tuple[str, ...]:
    """Return notes on columns that reveal a hidden column; notes quote no values or formulas.

    The rules in `held` name only columns of the model. If the table has other columns, rules are
    sought among all columns, too.
    """
    specs = plan.specs
    hidden = [spec.name for spec in specs if spec.hidden and spec.name in table.columns]
    if not hidden:
        return ()
    rules = [one.rule for one in held]
    searched = {spec.name: spec for spec in specs if spec.role not in _LEFT_OUT}
    if not searched.keys() >= {*table.columns}:
        of_all = (
            searched.get(name) or ColumnSpec(name, "identifier", "") for name in table.columns
        )
        whole = ColumnPlan(tuple(of_all))
        rules += [one.rule for one in find_rules(table, whole, seed=seed)]
    # Tables too small for rules are also searched for columns equal to a hidden column.
    texts = {name: table.column[name].texts for name in table.columns}
    rules += [
        Equal(columns=(name, other))
        for name in hidden
        for other in table.columns
        if other != name and texts[name].count() and texts[other].equals(texts[name])
    ]
    return tuple(_note(*way) for way in ways_to_reveal(rules, table.columns, hidden).items())


def ways_to_reveal(
    rules: Collection[AnyRule], names: Sequence[str], hidden: Collection[str]
) -> dict[str, list[tuple[str, ...]]]:
    """Find sets of visible columns that determine a hidden column.

    Each set still determines the column if the last column of every earlier set is hidden, too.
    If the last columns of all sets are hidden, no set remains.
    """
    visible = [name for name in names if name not in hidden]
    found: dict[str, list[tuple[str, ...]]] = {}
    while (way := _first_way(rules, visible, hidden)) is not None:
        name, sources = way
        found.setdefault(name, []).append(tuple(one for one in names if one in sources))
        visible.remove(found[name][-1][-1])
    return found


def _first_way(
    rules: Collection[AnyRule], visible: Collection[str], hidden: Collection[str]
) -> tuple[str, frozenset[str]] | None:
    """Apply rules to the visible columns until they determine a hidden column."""
    sources = {name: frozenset((name,)) for name in visible}
    n_known = 0
    while n_known < len(sources):
        n_known = len(sources)
        for rule in rules:
            for name in _determined(rule):
                others = {*rule.columns} - {name}
                if name not in sources and others <= sources.keys():
                    sources[name] = frozenset[str]().union(*(sources[one] for one in others))
                    if name in hidden:
                        return name, sources[name]
    return None


def _determined(rule: AnyRule) -> tuple[str, ...]:
    """Return the columns of a rule that its other columns determine."""
    if isinstance(rule, Formula):
        return rule.columns
    return rule.columns[-1:] if isinstance(rule, Determines) else ()


def _note(name: str, ways: Sequence[Sequence[str]]) -> str:
    shown = [" and ".join(map(quoted, way)) for way in ways[:_SHOWN_WAYS]]
    more = [f"from {len(ways) - _SHOWN_WAYS} more"] * (len(ways) > _SHOWN_WAYS)
    which = "it" if len(ways[0]) == 1 else "one of them"
    if len(ways) > 1:
        which = "one column of each"
    return f"{quoted(name)} {REVEALED} {', or from '.join(shown + more)}: hide {which}, too."
