"""Names from outside, made safe to show, to suggest and to use."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable

__all__ = ["one_line", "safe_stem", "suggest", "unique_names"]

# Characters that would break a one-line message or reorder it: controls, bidirectional marks,
# line and paragraph separators, lone surrogates, private use and unassigned code points.
_UNSHOWABLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
_TABLE_SUFFIX = re.compile(
    r"\.(csv|tsv|tab|txt|dat|data|parquet|pq|jsonl|ndjson|json|xlsx|xls|gz)$", re.IGNORECASE
)
_MAX_STEM = 50
_MAX_NOTES = 20


def one_line(text: str, limit: int = 80) -> str:
    r"""Show any text in one line: what cannot be shown is escaped, what is long is cut.

    Parameters
    ----------
    text : str
        Text from outside, even hostile.
    limit : int
        Longest result, in characters; at least 4.

    Returns
    -------
    str
        The text to put into a message.

    Examples
    --------
    >>> print(one_line("height\n(cm)"))
    height\n(cm)
    >>> one_line("x" * 100, limit=10)
    'xxxxxxx...'
    """
    shown = "".join(
        repr(char)[1:-1] if unicodedata.category(char) in _UNSHOWABLE else char
        for char in text[: limit + 1]
    )
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def suggest(name: str, known: Iterable[str]) -> str:
    """Name the nearest known name, as a sentence to append to an error message.

    Parameters
    ----------
    name : str
        The name that was not found.
    known : iterable of str
        The names that exist.

    Returns
    -------
    str
        ``' Did you mean "x"?'``, or the empty string when nothing is near.

    Examples
    --------
    >>> suggest("specis", ["species", "island"])
    ' Did you mean "species"?'
    >>> suggest("mass", ["island"])
    ''
    """
    by_key: dict[str, str] = {}
    for candidate in known:
        by_key.setdefault(candidate.strip().casefold(), candidate)
    near = difflib.get_close_matches(name.strip().casefold(), by_key, n=1, cutoff=0.6)
    return f' Did you mean "{one_line(by_key[near[0]])}"?' if near else ""


def safe_stem(filename: str) -> str:
    """Turn a file name, even a hostile one, into part of a folder name.

    Parameters
    ----------
    filename : str
        File name or path of a table; ``"-"`` is standard input.

    Returns
    -------
    str
        Letters, digits, ``-``, ``_`` and inner dots only, 1 to 50 characters; no table suffix.

    Examples
    --------
    >>> safe_stem("data/my table.csv.gz")
    'my-table'
    >>> safe_stem("..")
    'table'
    >>> safe_stem("-")
    'stdin'
    """
    if filename == "-":
        return "stdin"
    stem = re.split(r"[/\\]", unicodedata.normalize("NFC", filename))[-1]
    while _TABLE_SUFFIX.search(stem):
        stem = _TABLE_SUFFIX.sub("", stem)
    stem = re.sub(r"[^\w.]+", "-", stem)[:_MAX_STEM].strip(".-_")
    return stem or "table"


def unique_names(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Make column names distinct and non-empty.

    Parameters
    ----------
    names : iterable of str
        Names as they stand in the header.

    Returns
    -------
    names : list of str
        ``column_3`` for an empty third name; ``x_2`` for a second ``x``.
    notes : list of str
        One sentence for each name changed, up to 20, and one for the rest.

    Examples
    --------
    >>> unique_names(["x", "x", ""])[0]
    ['x', 'x_2', 'column_3']
    """
    given = list(names)
    taken = set(given)
    used: set[str] = set()
    counters: dict[str, int] = {}
    result: list[str] = []
    notes: list[str] = []
    for position, name in enumerate(given, 1):
        final = name if name.strip() else f"column_{position}"
        if final in used or (final != name and final in taken):
            final = _next_free(final, taken, counters)
        if final != name:
            what = f'the repeated name "{one_line(name)}"' if name.strip() else "an empty name"
            notes.append(
                f'Column {position} has {what} in the header: read as "{one_line(final)}".'
            )
        used.add(final)
        taken.add(final)
        result.append(final)
    if len(notes) > _MAX_NOTES:
        rest = len(notes) - _MAX_NOTES
        notes[_MAX_NOTES:] = [f"{rest} more names in the header are repeated or empty."]
    return result, notes


def _next_free(name: str, taken: set[str], counters: dict[str, int]) -> str:
    """Append the first number not taken, going on where the last search for this name ended."""
    number = counters.get(name, 2)
    while f"{name}_{number}" in taken:
        number += 1
    counters[name] = number + 1
    return f"{name}_{number}"
