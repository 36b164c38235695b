"""Remove the values of hidden columns from results.

`redact` masks the values of hidden columns, and values derived from them, before a report, a list,
a file or a terminal receives the result. A sentence that cites values is a `Note` with an
alternative text. Names of columns, counts of missing cells, equal rows and weights of columns in a
score are not values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from kpca_apps.errors import KpcaError
from kpca_apps.names import listed, quoted
from kpca_apps.novelty.result import (
    MISSPELT,
    ColumnProfile,
    ComparisonResult,
    Evaluation,
    FlaggedRow,
    MovedColumn,
    OddCell,
    Pattern,
    RankedRow,
    Reason,
    RepeatedRows,
    ScreeningResult,
    SourceInfo,
    UsualRow,
)

Finding = TypeVar("Finding", ColumnProfile, Evaluation, MovedColumn, OddCell, Reason)

HIDDEN, VALUES_HIDDEN = "(hidden)", "values hidden"
CONTRADICTED_BY_HIDDEN = "Cells of its row that are hidden contradict it."
# For each class: its field that names a column, and new field values if that column is hidden.
ABOUT_A_COLUMN: dict[type, tuple[str, dict[str, Any]]] = {
    ColumnProfile: ("name", {"hidden": True, "distribution": None, "why": VALUES_HIDDEN}),
    Evaluation: ("label", {"positive": HIDDEN}),
    MovedColumn: ("column", {"words": VALUES_HIDDEN}),
    OddCell: (
        "column",
        {
            "seen": HIDDEN,
            "sentence": "The values of the column are hidden.",
            "suggestion": "",
            "expected": "",
            "rule": "",
        },
    ),
    Reason: (
        "column",
        {"seen": HIDDEN, "expected": HIDDEN, "seen_value": None, "expected_value": None},
    ),
}


class Note(str):
    """A sentence that cites values; as a string, the sentence without them.

    Code that treats a note as a string shows no value. `visible_notes` returns the full text if
    none of its columns is hidden.
    """

    text: str
    columns: tuple[str, ...]

    def __new__(cls, text: str, bare: str, columns: tuple[str, ...]) -> Note:
        """Create a note from the full text, the text without values, and the columns it cites."""
        note = super().__new__(cls, bare)
        note.text, note.columns = text, columns
        return note

    def __reduce__(self) -> tuple[type[Note], tuple[str, str, tuple[str, ...]]]:
        return Note, (self.text, str(self), self.columns)

    def after(self, words: str) -> Note:
        """Return the note with a prefix."""
        return Note(f"{words}{self.text}", f"{words}{self}", self.columns)


def visible_notes(notes: Iterable[str], hidden: Collection[str]) -> tuple[str, ...]:
    """Return the text of each note; omit its values if it cites a hidden column."""
    return tuple(
        note.text if isinstance(note, Note) and not {*note.columns} & {*hidden} else str(note)
        for note in notes
    )


@contextmanager
def without_values(hidden: Collection[str]) -> Iterator[None]:
    """Remove hidden values from errors whose message is a `Note`."""
    try:
        yield
    except KpcaError as error:
        if not (error.args and isinstance(error.args[0], Note)):
            raise
        raise type(error)(*visible_notes(error.args[:1], hidden)) from error.__cause__


def redact_comparison(result: ComparisonResult, hidden: Collection[str]) -> ComparisonResult:
    """Remove the values of hidden columns from a comparison; its notes become plain text."""
    run = result.run
    positive = {"positive": HIDDEN} if run.settings.get("label") in hidden else {}
    return replace(
        result,
        source=redact_source(result.source, hidden),
        columns=_without(result.columns, hidden),
        evaluations=_without(result.evaluations, hidden),
        run=replace(
            run, warnings=visible_notes(run.warnings, hidden), settings={**run.settings, **positive}
        ),
    )


def redact(result: ScreeningResult, hidden: Collection[str]) -> ScreeningResult:
    """Remove the values of hidden columns from a result; its notes become plain text."""
    run = replace(result.run, warnings=visible_notes(result.run.warnings, hidden))
    rules = result.findings.rules
    texts = visible_notes([one.rule for one in rules], hidden)
    rules = tuple(replace(one, rule=text) for one, text in zip(rules, texts, strict=True))
    result = replace(result, run=run, findings=replace(result.findings, rules=rules))
    if not hidden:
        return result
    names = {group.name: group.name for group in result.groups}
    if not {*run.by}.isdisjoint(hidden):
        names = {name: name and f"group {number}" for number, name in enumerate(names, 1)}
    lists, findings, repeats = result.lists, result.findings, result.findings.duplicates
    has_id = lists.id_column is None or lists.id_column not in hidden
    ranked = tuple(_ranked(row, hidden, has_id, names.get(row.group, "")) for row in result.ranked)
    hints = {row.row: " ".join(row.hints) for row in ranked}
    contours, plane = result.pictures.contours, result.pictures.plane
    if contours is not None and {contours.x_name, contours.y_name} & {*hidden}:
        contours = None
    if plane is not None and any(axis.name in hidden for axis in (plane.x, plane.y) if axis):
        plane = None
    return replace(
        result,
        source=redact_source(result.source, hidden),
        reference=result.reference and redact_source(result.reference, hidden),
        columns=_without(result.columns, hidden),
        evaluations=_without(result.evaluations, hidden),
        ranked=ranked,
        lists=replace(
            lists,
            flagged=tuple(
                _flagged(row, hidden, has_id, hints.get(row.row)) for row in lists.flagged
            ),
            usual=tuple(_usual(row, hidden, has_id) for row in lists.usual),
            marks=lists.marks if has_id else tuple(replace(one, id="") for one in lists.marks),
            ids=lists.ids if has_id else {},
            files={} if result.source.file_column in hidden else lists.files,
        ),
        findings=replace(
            findings,
            odd_cells=_without(tuple(_cell(one, hidden) for one in findings.odd_cells), hidden),
            patterns=tuple(_pattern(one, hidden) for one in findings.patterns),
            duplicates=replace(
                repeats,
                equal=tuple(_repeated(one, hidden) for one in repeats.equal),
                near=tuple(_repeated(one, hidden) for one in repeats.near),
            ),
            moved=tuple(
                # Counts of missing cells reveal no value.
                one if one.what == "missing" else changed
                for one, changed in zip(
                    findings.moved, _without(findings.moved, hidden), strict=True
                )
            ),
        ),
        pictures=replace(result.pictures, contours=contours, plane=plane),
        groups=tuple(replace(one, name=names[one.name]) for one in result.groups),
    )


def masked(
    given: Mapping[str, Any],
    result: ScreeningResult | ComparisonResult | None,
    *,
    to_send: bool = False,
) -> dict[str, Any]:
    """Return the options of a command or call without hidden values.

    The value of a hidden label is masked. A query is masked if any column is hidden or the command
    is sent to others. Without a result (of many tables), both are masked if anything is hidden.
    """
    if result is None:
        hides_label = hides_any = bool(given.get("hide"))
    else:
        hides_label = any(one.positive == HIDDEN for one in result.evaluations)
        hides_any = to_send or any(column.hidden for column in result.columns)
    cites = [*["positive"] * hides_label, *["query"] * hides_any]
    return {**given, **{name: HIDDEN for name in cites if given.get(name)}}


def _without(findings: tuple[Finding, ...], hidden: Collection[str]) -> tuple[Finding, ...]:
    kept = []
    for one in findings:
        column, instead = ABOUT_A_COLUMN[type(one)]
        kept.append(replace(one, **instead) if getattr(one, column) in hidden else one)
    return tuple(kept)


def _cell(cell: OddCell, hidden: Collection[str]) -> OddCell:
    """Mask values of hidden cells in the evidence against another cell."""
    # A correction of a misspelt level comes from the cell's own letters: it reveals no hidden cell.
    if cell.kind == MISSPELT or {*cell.given}.isdisjoint(hidden):
        return cell
    return replace(cell, sentence=CONTRADICTED_BY_HIDDEN, suggestion="", expected="", rule="")


def _texts(
    columns: tuple[str, ...], texts: tuple[str, ...], hidden: Collection[str]
) -> tuple[str, ...]:
    pairs = zip(columns, texts, strict=True)
    return tuple(HIDDEN if name in hidden else text for name, text in pairs)


def redact_source(source: SourceInfo, hidden: Collection[str]) -> SourceInfo:
    """Remove names of files if the column of files is hidden."""
    if source.file_column not in hidden:
        return source
    # The first note states the number of files; all others name files.
    return replace(source, notes=source.notes[:1], left_out=())


def _ranked(row: RankedRow, hidden: Collection[str], has_id: bool, group: str) -> RankedRow:
    return replace(
        row,
        id=row.id if has_id else None,
        reasons=_without(row.reasons, hidden),
        # A hint reveals values of the columns that it names.
        hints=tuple(hint for hint in row.hints if not _is_about(hint, hidden)),
        cells=tuple(cell for cell in row.cells if cell[0] not in hidden),
        group=group,
    )


def _usual(row: UsualRow, hidden: Collection[str], has_id: bool) -> UsualRow:
    cells = tuple(cell for cell in row.cells if cell[0] not in hidden)
    return replace(row, id=row.id if has_id else None, cells=cells)


def _is_about(hint: str, columns: Collection[str]) -> bool:
    return any(quoted(name) in hint for name in columns)


def _flagged(
    row: FlaggedRow, hidden: Collection[str], has_id: bool, hint: str | None
) -> FlaggedRow:
    """Mask the values of a flagged row; `hint`, unless None, replaces the row's hint."""
    if hint is None:
        is_kept = {*row.columns}.isdisjoint(hidden) and not _is_about(row.hint, hidden)
        hint = row.hint if is_kept else ""
    seen, expected = (_texts(row.columns, texts, hidden) for texts in (row.seen, row.expected))
    return replace(row, id=row.id if has_id else None, seen=seen, expected=expected, hint=hint)


def _pattern(pattern: Pattern, hidden: Collection[str]) -> Pattern:
    if {*pattern.columns, *(pattern.common or ())[:1]}.isdisjoint(hidden):
        return pattern
    n, names = len(pattern.rows), [name for name in pattern.columns if name in hidden]
    of_columns = f" of {listed(names)}" * bool(names)
    sentence = f"{n:,} row{'s' * (n > 1)}: odd by hidden values{of_columns}."
    return replace(pattern, sentence=sentence, common=None)


def _repeated(group: RepeatedRows, hidden: Collection[str]) -> RepeatedRows:
    cells = tuple(_texts(group.columns, texts, hidden) for texts in group.cells)
    return replace(group, cells=cells)
