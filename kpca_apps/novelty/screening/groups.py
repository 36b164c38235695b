"""Groups of rows: which get a piece of a model of their own, and what is said of them.

A piece for each group of enough rows, that of the table for the others. The score of the default
detector is a logarithm of joined p-values, so that scores of different groups are nearly on one
scale, and are ranked as they are: on tables with planted faults that found more of them than
ranking by how rare a score is in its group (a tail estimated from few rows) or flagging the same
share of every group (which flags rows where nothing is wrong). With a clean reference each group
has its own threshold, and its scores are shifted to meet that of the others.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from kpca_apps.errors import ConfigError, OptionError
from kpca_apps.names import one_line
from kpca_apps.novelty.columns.parts import GroupKey
from kpca_apps.novelty.columns.plan import ColumnPlan, ColumnSpec, listed, quoted
from kpca_apps.novelty.detector.threshold import Rule
from kpca_apps.novelty.redact import Note
from kpca_apps.novelty.screening.model import MAX_GROUPS, NoveltyModel
from kpca_apps.system.arrays import IntArray
from kpca_apps.tables.table import Table

# Rows from which on a model of their own found more planted faults than one of the whole table that
# takes the group for a category: at 50 to 200 rows on average over groups that differ in how their
# columns go together, in place only, or in curvature; at 30 fewer.
MIN_ROWS = 50
# So many groups have as many landmarks each as a table; of more groups each has fewer, so that the
# matrices of all models stay as large.
FULL_LANDMARKS, FEWEST_LANDMARKS = 8, 100
LANDMARKS = {False: 300, True: 700}  # of a table that may hold outliers, and of a clean one
NAMED = 5  # groups named in one sentence


def rows_needed(rule: Rule) -> int:
    """Rows that a group must have for a piece of its own: enough to calibrate a rate, too."""
    # The smallest n with 1 / (n + 1) <= alpha.
    calibrating = math.ceil(1.0 / rule.setting - 1e-9) - 1 if rule.name == "alpha" else 0
    return max(MIN_ROWS, calibrating)


def own_groups(
    keys: Sequence[GroupKey], codes: IntArray, by: Sequence[str], enough: int, where: str
) -> list[int]:
    """Places of the groups that get a piece of their own, largest first; ConfigError if none.

    `codes` are those of the rows that are judged.
    """
    if len(keys) == 1:
        raise OptionError("by", f"{listed(by)} makes one group only: leave it out", where)
    sizes = np.bincount(codes, minlength=len(keys))
    names = [[text or "" for text in key] for key in keys]
    order = sorted(range(len(keys)), key=lambda place: (-int(sizes[place]), names[place]))
    own = [place for place in order if sizes[place] >= enough]
    if not own:
        few = (
            f"{where}: none of the {len(keys):,} groups by {listed(by)} has the {enough:,} rows "
            "that a model needs: the largest"
        )
        size = f" has {sizes[order[0]]:,}; leave --by out, or name a column of fewer values"
        largest = f", {quoted(_text(keys[order[0]]))},"
        raise ConfigError(Note(f"{few}{largest}{size}", f"{few}{size}", tuple(by)))
    return own[:MAX_GROUPS]


def landmarks_of_each(n_groups: int, clean: bool) -> int | None:
    """Landmarks of each of so many groups, `None` for those of a table."""
    if n_groups <= FULL_LANDMARKS:
        return None
    fewer = LANDMARKS[clean] * math.sqrt(FULL_LANDMARKS / n_groups)
    return max(FEWEST_LANDMARKS, round(fewer))


def plan_of_group(plan: ColumnPlan, by: Sequence[str], table: Table) -> ColumnPlan:
    """Plan of the columns of one group: as in the whole table, but for what does not vary in it."""
    return ColumnPlan(
        tuple(
            replace(spec, role="excluded", why="the same in all rows of the group", format=None)
            if spec.name in by
            else _spec_of_group(spec, table)
            for spec in plan.specs
        )
    )


def _spec_of_group(spec: ColumnSpec, table: Table) -> ColumnSpec:
    if not spec.used:
        return spec
    column = table.column(spec.name)
    if spec.format is None:
        levels = spec.levels(column)
        n_distinct, n_read, n_unreadable = len(levels.texts), int(levels.counts.sum()), 0
    else:
        readings = column.read(spec.format)
        n_distinct, n_read = len(np.unique(readings.ordered)), readings.ordered.size
        n_unreadable = int(readings.unreadable.sum())
    n_missing = len(column) - n_read
    spec = replace(spec, n_missing=n_missing, n_distinct=n_distinct, notes=())
    if n_unreadable > n_read or not n_read:
        return replace(spec, role="empty", why="hardly a value in the group", format=None)
    # A category that some rows lack varies.
    if n_distinct == 1 and not (spec.has_levels and n_missing):
        return replace(spec, role="constant", why="one value only in the group", format=None)
    return spec


def group_name(by: Sequence[str], key: GroupKey) -> str:
    """Name a group to readers, as "species Adelie"."""
    pairs = zip(by, key, strict=True)
    return ", ".join(f"{name} {'(missing)' if text is None else text}" for name, text in pairs)


def judged_sentence(model: NoveltyModel, n_rest: int) -> str:
    """Say which rows are judged among themselves; `n_rest` are not."""
    n_own, by = len(model.groups), listed(model.options.columns.by)
    models = "1 group has a model" if n_own == 1 else f"{n_own} groups have models"
    calibrated = ", and a threshold," if model.clean else ""
    rest = f"; {_rows(n_rest)} judged by that of the whole table" if n_rest else ""
    return f"By {by}: {models}{calibrated} of {'its' if n_own == 1 else 'their'} own{rest}."


def rest_note(model: NoveltyModel, keys: Sequence[GroupKey], codes: IntArray) -> Iterator[Note]:
    """Say which groups have no model of their own."""
    by, own = model.options.columns.by, {group.values for group in model.groups}
    others = [place for place, key in enumerate(keys) if key not in own]
    if not others:
        return
    sizes = np.bincount(codes, minlength=len(keys))
    others.sort(key=lambda place: (-int(sizes[place]), _text(keys[place])))
    names = ", ".join(quoted(_text(keys[place])) for place in others[:NAMED])
    more = f" and {len(others) - NAMED:,} more" if len(others) > NAMED else ""
    groups = "1 group" if len(others) == 1 else f"{len(others):,} groups"
    verb, its = ("has", "its") if len(others) == 1 else ("have", "their")
    most = f", and at most {MAX_GROUPS} groups have one" if len(own) == MAX_GROUPS else ""
    judged = (
        f" {verb} no model of {its} own, which takes "
        f"{rows_needed(model.rule):,} rows of {one_line(model.source.name)}{most}: their "
        f"{_rows(int(sizes[others].sum()))} judged by the model of the whole table."
    )
    which = f"{groups} by {listed(by)}"
    yield Note(f"{which} ({names}{more}){judged}", f"{which}{judged}", by)


def note_of_groups(names: Sequence[str], text: str, by: tuple[str, ...]) -> Note:
    """Say something of some groups, by their names where these may be shown."""
    bare = "1 group" if len(names) == 1 else f"{len(names):,} groups"
    return Note(f"In {listed(names)}{text}", f"In {bare}{text}", by)


def _rows(count: int) -> str:
    return "1 row is" if count == 1 else f"{count:,} rows are"


def _text(key: GroupKey) -> str:
    return ", ".join("(missing)" if text is None else text for text in key)
