"""Functions that make it safe to show, compare and use names that come from files."""

from __future__ import annotations

import difflib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

# Suffixes of tables: a folder is read as one table of all its files with these suffixes.
TABLE_SUFFIXES = (
    ".csv", ".tsv", ".tab", ".txt", ".dat", ".data", ".parquet", ".pq", ".jsonl", ".ndjson",
    ".json", ".xlsx", ".xlsm", ".xlsb", ".xls", ".arrow", ".feather", ".ipc", ".gz", ".bz2",
    ".xz", ".zst", ".zip",
)  # fmt: skip
_MAX_STEM = 50
_MAX_NOTES = 20
_LISTED = 5  # maximum number of names quoted in one sentence
MISSING = "(missing)"  # text shown for an empty cell
_CELL, _BEFORE = 40, 6  # maximum length of a shown cell; length shown before two texts' difference
_WORDS = re.compile(r'[^\W\d_]|"')
_SHOWN, _REASON = 40, 120  # maximum numbers of characters of an invalid value, and of a reason
_OBJECT = re.compile(r"<[^<>]* at 0x[0-9A-Fa-f]+>")  # Python's default repr

# Categories of characters that break, reorder or vanish in a one-line message: controls,
# bidirectional and zero-width marks, line separators, lone surrogates, private and unassigned code
# points; and letters and marks that have no width.
_UNSHOWABLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co", "Cn"})
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
# Names look the same if they differ only in these characters (white space, variation selectors,
# letters without width, ignorable code points) or in those of _UNSEEN_CATEGORIES.
_UNSEEN = re.compile(
    r"[\s\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    r"\U000e0000-\U000e0fff]"
)
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
_AROUND_NAMES = "\"'`\u00b4\u00ab\u00bb\u2018\u2019\u201a\u201c\u201d\u201e\u2039\u203a:"
# Some languages put up to three marks on a letter; more marks would overlap other lines.
_MOST_MARKS = 3
_NOT_PLAIN = re.compile(r"[^ -~]+")
_NOT_PLAIN_JSON = re.compile(r"[^\n -~]+")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{1,2}\S+")  # one slash if a Path merged them
# User and password of an address. A user's name may contain an @; text in brackets is a host.
_PASSWORD = re.compile(
    r"\A((?:--[\w-]+=)?\s*[A-Za-z][A-Za-z0-9+.-]+:/{1,2}"
    r"(?:(?!\[)[^/?#@:]*:|[^/?#]*:(?=[^/?#]*[@\uff20\ufe6b])|[^/?#\[]*:(?!\d+(?:[/?#,]|\Z))))"
    r".*[@\uff20\ufe6b]",  # urlsplit also accepts wide and small forms of @
    re.DOTALL,
)
# In a PostgreSQL address without an @, digits after the colon are a port. Any other text there is
# taken for a password whose host was forgotten.
_NO_PORT = re.compile(
    r"\A((?:--[\w-]+=)?\s*postgres(?:ql)?:/{1,2}[^/?#@\[]*:)(?!\d*(?:[/?#,]|\Z))[^/?#@]*(?![^/?#]*@)",
    re.I,
)


def visible(text: str) -> str:
    r"""Escape characters that are invisible or that change how other characters are shown.

    >>> print(visible("a\u200bb\u202ec"))
    a\u200bb\u202ec
    """
    return _NOT_PLAIN.sub(lambda run: _written_out(run[0], ascii), text)


def visible_json(text: str) -> str:
    r"""Escape in JSON what `visible` escapes in text; decoding the JSON gives the same values.

    >>> print(visible_json('{"a": "b\u202ec"}'))
    {"a": "b\u202ec"}
    """
    return _NOT_PLAIN_JSON.sub(lambda run: _written_out(run[0], json.dumps), text)


def _written_out(text: str, escaped: Callable[[str], str]) -> str:
    shown, n_marks = [], 0
    for char in text:
        category = unicodedata.category(char)
        n_marks = n_marks + 1 if category in ("Mn", "Me") else 0
        hidden = category in _UNSHOWABLE or char in _BLANK or n_marks > _MOST_MARKS
        shown.append(escaped(char)[1:-1] if hidden else char)
    return "".join(shown)


def one_line(text: str, limit: int = 80) -> str:
    """Return any text as one line of escaped text, cut to `limit` (at least 4) characters."""
    shown = visible(text[: limit + 1])
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def quoted(name: str) -> str:
    """Quote a column's name, which may be any text, for a message."""
    return f'"{one_line(name, 60)}"'


def quoted_cell(text: str) -> str:
    r"""Quote a cell for a sentence; cells without letters, such as numbers, get no quotes.

    Quotes in the cell are escaped, so that they cannot end the quotation.

    >>> print(quoted_cell("3.5 %"), quoted_cell('6" pipe'), quoted_cell("(missing)"))
    3.5 % "6\" pipe" (missing)
    """
    shown = one_line(text, _CELL)
    if shown == MISSING or not _WORDS.search(shown):
        return shown
    return '"' + shown.replace('"', '\\"') + '"'


def cut_apart(seen: str, expected: str, limit: int = _CELL) -> tuple[str, str]:
    """Shorten two long texts to one line each, around their first difference.

    >>> cut_apart("Pump of the second line, north", "Pump of the second line, south", 20)
    ('...line, north', '...line, south')
    """
    start = 0
    if expected and max(len(seen), len(expected)) > limit:
        pairs = enumerate(zip(seen, expected, strict=False))
        first = next((k for k, (a, b) in pairs if a != b), min(len(seen), len(expected)))
        start = first - _BEFORE if first + _BEFORE > limit - len("...") else 0
    cut = [f"...{text[start:]}" if start else text for text in (seen, expected)]
    return one_line(cut[0], limit), one_line(cut[1], limit)


def listed(names: Sequence[str]) -> str:
    """Quote the first names, and add the number of further names."""
    first = ", ".join(quoted(name) for name in names[:_LISTED])
    return first + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def shown(value: object, *, whole: bool = False) -> str:
    """Format an invalid value in a few characters, without passwords.

    With `whole`, floats keep their decimal point.

    >>> shown(0.25), shown(1.0), shown(1.0, whole=True), shown("1"), shown(10**5000)
    ('0.25', '1', '1.0', "'1'", 'a number of thousands of digits')
    """
    if isinstance(value, float) and not whole and float(f"{value:g}") == value:
        return f"{value:g}"
    try:
        return one_line(without_passwords(repr(value)), _SHOWN)
    except ValueError:  # Python does not write integers of more than 4,300 digits
        return "a number of thousands of digits"


def in_prose(names: Sequence[str]) -> str:
    """Join names as in prose: ``a, b and c``."""
    *others, last = names or [""]
    return f"{', '.join(others)} and {last}" if others else last


def reason_of(error: BaseException) -> str:
    """Return the first line of an error's message.

    >>> reason_of(ValueError("no image in <_io.BytesIO object at 0x7fef00ed3790>: cut short."))
    'no image in it: cut short'
    """
    text = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    return one_line(_OBJECT.sub("it", text.split("\n", 1)[0].rstrip(".")), _REASON)


def suggest(name: str, known: Iterable[str]) -> str:
    """Return ``' Did you mean "x"?'`` for the most similar known name; '' if none is similar."""
    by_key: dict[str, str] = {}
    for candidate in known:
        by_key.setdefault(candidate.strip().casefold(), candidate)
    near = difflib.get_close_matches(name.strip().casefold(), by_key, n=1, cutoff=0.6)
    return f' Did you mean "{one_line(by_key[near[0]])}"?' if near else ""


def safe_stem(filename: str) -> str:
    """Convert a path to a part of a folder's name: letters, digits, ``-``, ``_``, inner dots."""
    if filename == "-":
        return "stdin"
    stem = re.split(r"[/\\]", unicodedata.normalize("NFC", filename))[-1]
    while stem.lower().endswith(TABLE_SUFFIXES):
        stem = stem.rpartition(".")[0]
    stem = re.sub(r"[^\w.]+", "-", stem)[:_MAX_STEM].strip(".-_")
    return stem or "table"


def is_pattern(name: str) -> bool:
    """Whether polars would treat a column name as a regular expression.

    >>> is_pattern("^(a|b)$"), is_pattern("^a")
    (True, False)
    """
    return name.startswith("^") and name.endswith("$")


def name_key(name: str) -> str:
    r"""Return a key that is equal for column names that look the same.

    The key ignores case, the encoding of accents, white space, characters without width, and quotes
    or a colon around the name. If nothing is left, the key is the name.

    >>> name_key(" Cle\u0301\u200b:") == name_key('"CL\u00c9"')
    True
    """
    folded = _UNSEEN.sub("", unicodedata.normalize("NFD", name).casefold())
    seen = (sign for sign in folded if unicodedata.category(sign) not in _UNSEEN_CATEGORIES)
    return unicodedata.normalize("NFC", "".join(seen)).strip(_AROUND_NAMES) or name


def unique_names(names: Iterable[str]) -> tuple[list[str], list[str], dict[str, str]]:
    """Make column names distinct and not empty: ``x_2`` for a second ``x``, ``column_3`` for "".

    Returns the names, a note for each change, and the original of each changed name. A name that
    polars would treat as a pattern gets an underscore; null characters become underscores.
    """
    given = list(names)
    taken = set(given)
    used: set[str] = set()
    counters: dict[str, int] = {}
    result: list[str] = []
    notes: list[str] = []
    renamed: dict[str, str] = {}
    for position, name in enumerate(given, 1):
        plain = name.replace("\0", "_")  # null characters make Arrow panic
        final = f"{plain}{'_' * is_pattern(name)}" if name.strip() else f"column_{position}"
        if final in used or (final != name and final in taken):
            # Continue the last search for a free number, as thousands of names may repeat.
            number = counters.get(final, 2)
            while f"{final}_{number}" in taken:
                number += 1
            counters[final] = number + 1
            final = f"{final}_{number}"
        if final != name:
            kind = (
                "pattern of a" if is_pattern(name) else "repeated" if plain == name else "unusable"
            )
            what = f'the {kind} name "{one_line(name)}"' if name.strip() else "an empty name"
            notes.append(
                f'Column {position} has {what} in the header: read as "{one_line(final)}".'
            )
            renamed[final] = name
        used.add(final)
        taken.add(final)
        result.append(final)
    if len(notes) > _MAX_NOTES:
        rest = len(notes) - _MAX_NOTES
        notes[_MAX_NOTES:] = [f"{rest} more names in the header are repeated, empty or patterns."]
    return result, notes, renamed


def without_password(text: str) -> str:
    """Replace the password of an address by dots; ``--option=`` may precede the address.

    Text between a colon and a later ``@`` counts as a password, even if it could be a port. In
    PostgreSQL addresses, a port that is not a number counts as a password, too.

    >>> without_password("postgresql://ada:12/abc@db/shop"), without_password("--a=x://b@c:1/d")
    ('postgresql://ada:...@db/shop', '--a=x://b@c:1/d')
    """
    return _NO_PORT.sub(r"\1...", _PASSWORD.sub(r"\1...@", text))


def without_passwords(sentence: str) -> str:
    """Replace the password of each address in a sentence by dots.

    >>> without_passwords('"tcp://ada:12@host:1" does not answer')
    '"tcp://ada:...@host:1" does not answer'
    """
    return _ADDRESS.sub(lambda found: without_password(found[0]), sentence)
