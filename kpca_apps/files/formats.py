"""What a file holds, told by its first bytes and not by its name."""

from __future__ import annotations

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.files.jsonlines import looks_like_json_lines
from kpca_apps.files.names import one_line

__all__ = [
    "HEAD",
    "PARQUET_SUFFIXES",
    "binary_format",
    "checked_delimiter",
    "is_json_lines",
    "refuse_documents",
    "refuse_text_options",
]

HEAD = 4096
"""First bytes by which a format is known."""
PARQUET_SUFFIXES = (".parquet", ".pq")

_JSON_SUFFIXES = (".jsonl", ".ndjson")
_EXCEL_SUFFIXES = (".xlsx", ".xls", ".xlsm")
_ZIP = b"PK\x03\x04"
_OLE = b"\xd0\xcf\x11\xe0"
# Contents that are no table of ours, and what to call them.
_FOREIGN = (
    (_ZIP, "a zip archive"),
    (b"\x1f\x8b", "packed with gzip twice"),
    (b"BZh91AY&SY", "packed with bzip2"),
    (b"\xfd7zXZ", "packed with xz"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd"),
    (b"%PDF", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"SQLite format 3\0", "a database"),
    (b"ARROW1\0", "an Arrow file"),
)
_NAMED_DELIMITERS = {
    "comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": " ",
}  # fmt: skip


def checked_delimiter(delimiter: str | None) -> str | None:
    """Turn a delimiter as the user gives it into one character.

    Raises
    ------
    ConfigError
        If it cannot cut cells.

    Examples
    --------
    >>> checked_delimiter("comma")
    ','
    """
    if delimiter is None:
        return None
    character = _NAMED_DELIMITERS.get(delimiter.lower(), delimiter)
    is_half = "\ud800" <= character[:1] <= "\udfff"
    if len(character) != 1 or character in '\0"\r\n' or character.isalnum() or is_half:
        raise ConfigError(
            f'The delimiter "{one_line(delimiter)}" is not one character that can cut cells; '
            'give one such as ";", or "tab".'
        )
    return character


def refuse_text_options(kind: str, label: str, delimiter: str | None, encoding: str | None) -> None:
    """Refuse options of text files that were given for a binary format."""
    if delimiter is not None or encoding is not None:
        raise ConfigError(f"{label}: a delimiter or encoding does not apply to {kind}.")


def binary_format(
    head: bytes, tail: bytes, label: str, suffix: str, *, is_workbook: bool
) -> str | None:
    r"""Name a binary format.

    Parameters
    ----------
    head : bytes
        The first bytes of the file, `HEAD` of them suffice.
    tail : bytes
        Its last four.
    label : str
        The file's name for messages.
    suffix : str
        Of its name.
    is_workbook : bool
        Whether it is one if it is a zip archive.

    Returns
    -------
    str or None
        ``"parquet"`` or ``"excel"``; ``None`` means text.

    Raises
    ------
    InputError
        If the contents are no table.

    Examples
    --------
    >>> binary_format(b"PAR1\0", b"PAR1", "t.csv", ".csv", is_workbook=False)
    'parquet'
    """
    is_binary = b"\0" in head[:HEAD]
    # A header of text may start with these letters too.
    if head.startswith(b"PAR1") and (is_binary or tail == b"PAR1"):
        return "parquet"
    if head.startswith(_OLE) or (head.startswith(_ZIP) and is_workbook):
        return "excel"
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            raise InputError(f"{label}: this is {what}, not a table; export it as CSV or Parquet.")
    if suffix in (*PARQUET_SUFFIXES, *_EXCEL_SUFFIXES) and is_binary:
        raise InputError(f"{label}: the contents are not what {suffix} promises; export it again.")
    return None


def is_json_lines(text: bytes, suffix: str, delimiter: str | None) -> bool:
    """Whether a text holds one object a line, by its name or its first bytes."""
    return suffix in _JSON_SUFFIXES or (delimiter is None and looks_like_json_lines(text))


def refuse_documents(text: bytes, label: str, suffix: str) -> None:
    """Refuse text that is a page or one JSON array, and no table.

    Raises
    ------
    InputError
        Saying what it is.
    """
    head = text[:1024].lstrip().lower()
    if head.startswith((b"<!doctype", b"<html", b"<?xml")):
        raise InputError(f"{label}: this is a web or XML page; export the table as CSV.")
    if suffix == ".json" and head.startswith(b"["):
        raise InputError(f"{label}: this is one JSON array; write one object a line (JSON lines).")
