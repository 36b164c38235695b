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
    """Show any text in one line: what cannot be shown is escaped, what is long is cut."""
    shown = "".join(
        repr(char)[1:-1] if unicodedata.category(char) in _UNSHOWABLE else char
        for char in text[: limit + 1]
    )
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def suggest(name: str, known: Iterable[str]) -> str:
    """Name the nearest known name, as a sentence to append to an error message, or nothing."""
    by_key: dict[str, str] = {}
    for candidate in known:
        by_key.setdefault(candidate.strip().casefold(), candidate)
    near = difflib.get_close_matches(name.strip().casefold(), by_key, n=1, cutoff=0.6)
    return f' Did you mean "{one_line(by_key[near[0]])}"?' if near else ""


def safe_stem(filename: str) -> str:
    """Turn a file name, even a hostile one, into part of a folder name.

    Letters, digits, ``-``, ``_`` and inner dots only, 1 to 50 characters; no table suffix.
    """
    if filename == "-":
        return "stdin"
    stem = re.split(r"[/\\]", unicodedata.normalize("NFC", filename))[-1]
    while _TABLE_SUFFIX.search(stem):
        stem = _TABLE_SUFFIX.sub("", stem)
    stem = re.sub(r"[^\w.]+", "-", stem)[:_MAX_STEM].strip(".-_")
    return stem or "table"


def unique_names(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Make column names distinct and non-empty, and say so of each one changed, up to 20.

    An empty third name becomes ``column_3``, a second ``x`` becomes ``x_2``.
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
            # The first number not taken, from where the last search for this name ended.
            number = counters.get(final, 2)
            while f"{final}_{number}" in taken:
                number += 1
            counters[final] = number + 1
            final = f"{final}_{number}"
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
