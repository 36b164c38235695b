"""What is hidden stays hidden: the one place where values of hidden columns leave a result.

Findings are made from all values, whoever may see them. Then `redact` takes those of hidden columns
out of the result object, before a report, a list, a file or a terminal sees it: by the column that
each value is of, whatever that column was taken as. A sentence that cites values without being part
of such an object is a `Note`, which knows what is left of it without them.

Values are also what follows from them: what was expected, a profile, the levels of an axis. Names
of columns, how many cells are missing, which rows are alike and how much a column weighs in a score
are no values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from kpca_apps.errors import KpcaError
from kpca_apps.novelty.columns.plan import quoted
from kpca_apps.novelty.result import (
    ColumnProfile,
    ComparisonResult,
    FlaggedRow,
    MovedColumn,
    OddCell,
    Pattern,
    RankedRow,
    Reason,
    RepeatedRows,
    ScreeningResult,
    SourceInfo,
)

__all__ = ["HIDDEN", "Note", "redact", "told", "without_values"]

Result = TypeVar("Result", ScreeningResult, ComparisonResult)

HIDDEN = "(hidden)"


class Note(str):
    """A sentence that cites values; as a string it is what is left of it without them.

    So who knows nothing of notes tells no value. `told` gives its whole text where none of its
    columns is hidden.
    """

    text: str
    columns: tuple[str, ...]

    def __new__(cls, text: str, bare: str, columns: tuple[str, ...]) -> Note:
        """Make a note of its text, what may always be said of it, and whose values it cites."""
        note = super().__new__(cls, bare)
        note.text, note.columns = text, columns
        return note

    def __reduce__(self) -> tuple[type[Note], tuple[str, str, tuple[str, ...]]]:
        return Note, (self.text, str(self), self.columns)

    def after(self, words: str) -> Note:
        """Return the note behind some words."""
        return Note(f"{words}{self.text}", f"{words}{self}", self.columns)


def told(notes: Iterable[str], hidden: Collection[str]) -> tuple[str, ...]:
    """Return notes as they may be said, where the values of some columns are hidden."""
    return tuple(
        note.text if isinstance(note, Note) and not {*note.columns} & {*hidden} else str(note)
        for note in notes
    )


@contextmanager
def without_values(hidden: Collection[str]) -> Iterator[None]:
    """Let errors cite no values of hidden columns: those whose message is a `Note`."""
    try:
        yield
    except KpcaError as error:
        if not (error.args and isinstance(error.args[0], Note)):
            raise
        raise type(error)(*told(error.args[:1], hidden)) from error.__cause__


def redact(result: Result, hidden: Collection[str]) -> Result:
    """Take the values of hidden columns out of a result."""
    if not hidden:
        return result
    columns = tuple(_profile(one) if one.name in hidden else one for one in result.columns)
    evaluations = tuple(
        replace(one, positive=HIDDEN) if one.label in hidden else one for one in result.evaluations
    )
    source = _source(result.source, hidden)
    if isinstance(result, ComparisonResult):
        settings = dict(result.settings)
        if settings.get("label") in hidden:
            settings["positive"] = HIDDEN
        return replace(
            result, source=source, columns=columns, evaluations=evaluations, settings=settings
        )
    names = {group.name: group.name for group in result.groups}
    if not {*result.by}.isdisjoint(hidden):
        names = {name: name and f"group {number}" for number, name in enumerate(names, 1)}
    has_id = result.id_column is None or result.id_column not in hidden
    ranked = tuple(_ranked(row, hidden, has_id, names.get(row.group, "")) for row in result.ranked)
    hints = {row.row: " ".join(row.hints) for row in ranked}
    contours, plane = result.contours, result.plane
    if contours is not None and {contours.x_name, contours.y_name} & {*hidden}:
        contours = None
    if plane is not None and any(axis.name in hidden for axis in (plane.x, plane.y) if axis):
        plane = None
    duplicates = result.duplicates
    return replace(
        result,
        source=source,
        reference=result.reference and _source(result.reference, hidden),
        ranked=ranked,
        columns=columns,
        patterns=tuple(_pattern(one, hidden) for one in result.patterns),
        contours=contours,
        evaluations=evaluations,
        odd_cells=tuple(
            _odd_cell(one) if one.column in hidden else one for one in result.odd_cells
        ),
        odd_cell_rows=tuple(
            _flagged(unflagged, hidden, has_id, _hint_of_cells(unflagged, hidden))
            for unflagged in result.odd_cell_rows
        ),
        duplicates=replace(
            duplicates,
            equal=tuple(_repeated(one, hidden) for one in duplicates.equal),
            near=tuple(_repeated(one, hidden) for one in duplicates.near),
        ),
        moved=tuple(_moved(one) if one.column in hidden else one for one in result.moved),
        groups=tuple(replace(one, name=names[one.name]) for one in result.groups),
        flagged_rows=tuple(
            _flagged(row, hidden, has_id, hints.get(row.row, "")) for row in result.flagged_rows
        ),
        plane=plane,
        row_ids=result.row_ids if has_id else {},
        row_files={} if result.source.file_column in hidden else result.row_files,
    )


def _source(source: SourceInfo, hidden: Collection[str]) -> SourceInfo:
    if source.file_column not in hidden:
        return source
    # What is said of the files names them, but for the first sentence: how many they are.
    return replace(source, notes=source.notes[:1])


def _profile(column: ColumnProfile) -> ColumnProfile:
    return replace(column, hidden=True, distribution=None)


def _ranked(row: RankedRow, hidden: Collection[str], has_id: bool, group: str) -> RankedRow:
    return replace(
        row,
        id=row.id if has_id else None,
        reasons=tuple(_reason(one) if one.column in hidden else one for one in row.reasons),
        # A hint names the columns that it is about, and follows from their values.
        hints=tuple(hint for hint in row.hints if not any(quoted(name) in hint for name in hidden)),
        cells=tuple(cell for cell in row.cells if cell[0] not in hidden),
        group=group,
    )


def _reason(reason: Reason) -> Reason:
    return replace(reason, seen=HIDDEN, expected=HIDDEN, seen_value=None, expected_value=None)


def _flagged(row: FlaggedRow, hidden: Collection[str], has_id: bool, hint: str) -> FlaggedRow:
    seen, expected = (
        tuple(
            HIDDEN if name in hidden else text
            for name, text in zip(row.columns, texts, strict=True)
        )
        for texts in (row.seen, row.expected)
    )
    return replace(row, id=row.id if has_id else None, seen=seen, expected=expected, hint=hint)


def _hint_of_cells(row: FlaggedRow, hidden: Collection[str]) -> str:
    return row.hint if {*row.columns}.isdisjoint(hidden) else ""


def _pattern(pattern: Pattern, hidden: Collection[str]) -> Pattern:
    if {*pattern.columns, *(pattern.common or ())[:1]}.isdisjoint(hidden):
        return pattern
    sentence = f"{len(pattern.rows):,} rows are odd for the same reason (values hidden)."
    return replace(pattern, sentence=sentence, common=None)


def _odd_cell(cell: OddCell) -> OddCell:
    sentence = "The values of the column are hidden."
    return replace(cell, seen=HIDDEN, sentence=sentence, suggestion="")


def _repeated(group: RepeatedRows, hidden: Collection[str]) -> RepeatedRows:
    cells = tuple(
        tuple(
            HIDDEN if name in hidden else text
            for name, text in zip(group.columns, texts, strict=True)
        )
        for texts in group.cells
    )
    return replace(group, cells=cells)


def _moved(moved: MovedColumn) -> MovedColumn:
    # How many cells are missing is no value.
    return moved if moved.what == "missing" else replace(moved, words="values hidden")
