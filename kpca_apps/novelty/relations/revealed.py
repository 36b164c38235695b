"""Hidden columns that visible ones reveal, by the rules between the columns of a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kpca_apps.names import quoted
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec
from kpca_apps.novelty.relations.finding.discovery import find_rules
from kpca_apps.novelty.relations.rule import AnyRule, Determines, Equal, HeldRule, Linear, Product
from kpca_apps.novelty.result import REVEALED
from kpca_apps.tables.table import Table

_LEFT_OUT = ("excluded", "label")  # roles of columns that are shown, but not searched for rules
_SHOWN_WAYS = 4  # of one hidden column that a note names


def revealed_notes(
    table: Table, plan: ColumnPlan, held: Sequence[HeldRule], seed: int
) -> tuple[str, ...]:
    """Name the columns that reveal a hidden one; the notes hold names only, no value or formula.

    The rules that are `held` cover no column that is left out of the model, so where there is one
    the table is searched again with all of its columns.
    """
    specs = plan.specs
    hidden = [spec.name for spec in specs if spec.hidden and spec.name in table.columns]
    if not hidden:
        return ()
    rules = [one.rule for one in held]
    searched = {spec.name: spec for spec in specs if spec.role not in _LEFT_OUT}
    if not searched.keys() >= {*table.columns}:
        # Identifiers are searched and read as they look, whatever the model does with them.
        of_all = (
            searched.get(name) or ColumnSpec(name, "identifier", "") for name in table.columns
        )
        whole = ColumnPlan(tuple(of_all))
        rules += [one.rule for one in find_rules(table, whole, seed=seed)]
    # Rules need rows as evidence; a copy needs none.
    texts = {name: table.column(name).texts for name in table.columns}
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
    """Find the sets of visible columns from each of which a hidden column follows.

    Each way is one that remains when the last column of every way before it is hidden, too: with
    all of these hidden, none is left.
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
    """Follow rules from the visible columns until they lead to a hidden one."""
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
    """Return the columns of a rule that each follow from its others."""
    if isinstance(rule, Equal | Linear | Product):
        return rule.columns
    return rule.columns[-1:] if isinstance(rule, Determines) else ()


def _note(name: str, ways: Sequence[Sequence[str]]) -> str:
    """Say from which columns a hidden one follows, and what to do."""
    shown = [" and ".join(map(quoted, way)) for way in ways[:_SHOWN_WAYS]]
    more = [f"from {len(ways) - _SHOWN_WAYS} more"] * (len(ways) > _SHOWN_WAYS)
    which = "it" if len(ways[0]) == 1 else "one of them"
    if len(ways) > 1:
        which = "one column of each"
    return f"{quoted(name)} {REVEALED} {', or from '.join(shown + more)}: hide {which}, too."
