"""Open a text of many rows: its encoding, what cuts it, and where its parts begin."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kpca_apps.errors import InputError
from kpca_apps.files.decoding import (
    NotUtf8,
    checked_utf8,
    find_codec,
    guess_note,
    mark_of,
    transcoded,
    undecodable,
)
from kpca_apps.files.delimited import HEAD_BYTES, Cutter, choose_cutter, refuse_useless
from kpca_apps.files.formats import is_json_lines, refuse_documents
from kpca_apps.files.known import KnownFile
from kpca_apps.files.limits import require_memory
from kpca_apps.files.output import spool
from kpca_apps.files.parts import PartedTable, parted_table
from kpca_apps.files.parts_text import TextIndex, index_text
from kpca_apps.files.raw import bounded_rows
from kpca_apps.files.source import SourceInfo
from kpca_apps.files.stored import StoredFile, hashed
from kpca_apps.temporary import TemporaryPath

__all__ = ["has_many_lines", "parted_text"]


_UTF8_MARK = 3


@dataclass(frozen=True)
class _Text:
    """A text in UTF-8 on disk, and the hash of the file it was made from, if known.

    `skip` is where it begins, behind its mark; `codec` what its bytes are held to be.
    """

    file: KnownFile
    skip: int
    codec: str
    encoding: str
    notes: tuple[str, ...]
    spools: tuple[TemporaryPath, ...]
    sha256: str | None

    def head(self) -> bytes:
        stop = min(self.skip + HEAD_BYTES, self.file.size)
        return self.file.read(self.skip, max(stop, self.skip))


def has_many_lines(file: KnownFile, most: int, encoding: str | None = None) -> bool:
    """Whether a text may hold more rows than `most`, which takes as many ends of lines.

    One with fewer is refused here if a row of it does not end.
    """
    newlines = returns = 0
    for chunk in bounded_rows(file.chunks(), file.label, encoding):
        newlines += chunk.count(b"\n")
        returns += chunk.count(b"\r")
        if newlines >= most:
            return True
    return newlines == 0 and returns >= most


def parted_text(
    stored: StoredFile,
    in_memory_rows: int,
    part_rows: int | None,
    delimiter: str | None,
    encoding: str | None,
) -> PartedTable | None:
    """Open delimited text in parts.

    Parameters
    ----------
    stored : StoredFile
        The file.
    in_memory_rows : int
        Up to so many rows, nothing is made of it.
    part_rows : int or None
        Rows of a part.
    delimiter, encoding : str or None
        As given.

    Returns
    -------
    PartedTable or None
        ``None`` where it is to be read as a whole: JSON lines, fewer rows than lines, or none.

    Raises
    ------
    ConfigError, InputError
        As `read_table`.
    """
    text = _with_newlines(_decoded(stored, encoding))
    if all(chunk.isspace() or not chunk for chunk in _behind(text.skip, text.file.chunks())):
        return None
    head = text.head()
    refuse_documents(head, stored.label, stored.suffix)
    if is_json_lines(head, stored.suffix, delimiter):
        # It is read as a whole.
        for _ in bounded_rows(text.file.chunks(), stored.label):
            pass
        return None
    try:
        index, cutter, sha256 = _indexed(text, part_rows, delimiter)
    except NotUtf8 as error:
        if encoding is not None or text.skip:
            raise undecodable(
                error.byte, error.position, error.line, text.codec, stored.label
            ) from None
        note = guess_note(error.byte, error.line)
        text = _with_newlines(_transcoded(stored, "cp1252", "cp1252", [note]))
        index, cutter, sha256 = _indexed(text, part_rows, delimiter)
    if index.n_rows <= in_memory_rows:
        return None
    source = SourceInfo(
        name=stored.name,
        format="csv",
        sha256=sha256,
        n_bytes=stored.n_bytes,
        n_rows=index.n_rows,
        n_columns=len(index.header.names),
        encoding=text.encoding,
        delimiter=cutter.stated,
        notes=(*stored.notes, *text.notes, *cutter.notes, *index.header.notes),
    )
    rows = tuple(index.parts(text.file, cutter.delimiter))
    require_memory(stored.label, max(part.stop - part.start for part in rows))
    return parted_table(source, index.header.names, rows, index.part_rows, text.spools)


def _decoded(stored: StoredFile, encoding: str | None) -> _Text:
    """Take a text as it is where it claims to be UTF-8, or a copy of it in UTF-8."""
    marked = mark_of(stored.head(4)) if encoding is None else None
    if marked is not None and marked[1] != "utf-8":
        return _transcoded(stored, *marked)
    codec = "utf-8" if encoding is None else find_codec(encoding)
    if codec != "utf-8":
        return _transcoded(stored, codec, encoding or codec, [])
    if marked is not None:
        codec = marked[0]
    skip = 0 if marked is None else _UTF8_MARK
    name = encoding or "utf-8"
    return _Text(stored.file, skip, codec, name, (), stored.spools, stored.sha256)


def _transcoded(stored: StoredFile, codec: str, encoding: str, notes: list[str]) -> _Text:
    digest = hashlib.sha256()
    chunks = hashed(stored.file.chunks(), digest)
    copy = spool(transcoded(chunks, codec, stored.label), stored.label)
    file = KnownFile.at(copy.path, stored.label)
    sha256 = stored.sha256 or digest.hexdigest()
    return _Text(file, 0, codec, encoding, tuple(notes), (copy,), sha256)


def _with_newlines(text: _Text) -> _Text:
    """Copy a text whose lines end as on an old Macintosh; others stay."""
    if any(b"\n" in chunk for chunk in text.file.chunks()):
        return text
    digest = hashlib.sha256()
    chunks = hashed(text.file.chunks(), digest)
    copy = spool((chunk.replace(b"\r", b"\n") for chunk in chunks), text.file.label)
    file = KnownFile.at(copy.path, text.file.label)
    return replace(text, file=file, spools=(copy,), sha256=text.sha256 or digest.hexdigest())


def _indexed(
    text: _Text, part_rows: int | None, delimiter: str | None
) -> tuple[TextIndex, Cutter, str]:
    """Find the parts of a text; what cuts it and the hash of its file come out as well."""
    head, label = text.head(), text.file.label
    cutter = choose_cutter(head, delimiter)
    if delimiter is not None and not _occurs(delimiter.encode("utf-8"), text, cutter.skip):
        refuse_useless(head[cutter.skip :], delimiter, label)
    digest = hashlib.sha256()
    first = text.skip + cutter.skip
    chunks = _behind(first, checked_utf8(hashed(text.file.chunks(), digest), label))
    try:
        index = index_text(chunks, cutter, label, first_byte=first, part_rows=part_rows)
    except InputError:
        # In another encoding, other characters may cut the cells: that is to be known first.
        for _ in checked_utf8(text.file.chunks(), label):
            pass
        raise
    return index, cutter, text.sha256 or digest.hexdigest()


def _occurs(wanted: bytes, text: _Text, skip: int) -> bool:
    """Whether a character stands anywhere in a text: nearly always, near its beginning."""
    held = b""
    for chunk in _behind(text.skip + skip, checked_utf8(text.file.chunks(), text.file.label)):
        if wanted in held + chunk:
            return True
        held = chunk[-len(wanted) :]
    return False


def _behind(skip: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Leave out the first bytes."""
    for chunk in chunks:
        yield chunk[skip:]
        skip = max(skip - len(chunk), 0)
