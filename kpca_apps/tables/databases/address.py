"""Addresses in a database: its URI, and a table or a query."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import unquote

from kpca_apps.errors import ConfigError, OptionError
from kpca_apps.names import one_line
from kpca_apps.tables.read.uri import refuse_password, scheme_of

DATABASE_KINDS = {
    "postgresql": "PostgreSQL",
    "postgres": "PostgreSQL",
    "sqlite": "SQLite",
    "duckdb": "DuckDB",
}
_OF_FILES = ("sqlite", "duckdb")
# A part of a table's name: in double quotes (a quote inside is doubled), or without dots.
_PART = re.compile(r'"((?:[^"\0]|"")+)"|([^".\0]+)')
# The first word of a query that only reads, after any comments and parentheses.
_READS = re.compile(
    r"(\s|\(|--[^\n]*\n|/\*.*?\*/)*(select|with|values|table|from)\b", re.IGNORECASE | re.DOTALL
)
_ORDERED = re.compile(r"\border\s+by\b", re.IGNORECASE)
_REMARK = r"--[^\n]*|/\*.*?\*/"
# Parts of a query that are not code: comments, string literals and quoted names.
_OPAQUE = re.compile(
    rf"({_REMARK})|\be'(?:[^'\\]|\\.|'')*'|'[^']*'|\"[^\"]*\"|(\$\w*\$).*?\2",
    re.IGNORECASE | re.DOTALL,
)

TableName = tuple[str, ...]  # (schema, name) or (name,)


@dataclass(frozen=True)
class Address:
    """A database, and a table or query in it."""

    kind: str  # "PostgreSQL", "SQLite" or "DuckDB"
    uri: str  # URI without the name of a table
    path: str  # file of an SQLite or DuckDB database; else empty
    table: TableName | None = None
    query: str | None = None  # query without a final semicolon

    @property
    def name(self) -> str:
        """The name of the table or query in messages."""
        if self.table is not None:
            return ".".join(self.table)
        database = PurePath(self.path).stem
        if not self.path:
            database = self.uri.partition("?")[0].split("/", 3)[-1]
        if self.query is None:
            return database or "database"
        return f"query of {database}" if database else "query"

    @property
    def is_ordered(self) -> bool:
        """Whether a query sorts its rows; true for a table."""
        return self.query is None or _ORDERED.search(_outermost(self.query)) is not None


def is_database(path: object) -> bool:
    """Whether a path is the address of a supported database.

    >>> is_database("sqlite:///shop.db"), is_database("shop.db")
    (True, False)
    """
    return scheme_of(path) in DATABASE_KINDS


def database_address(uri: str, table: str | None = None, query: str | None = None) -> Address:
    """Parse the address of a database, which may name a table after a ``#``.

    >>> database_address('sqlite:///data/shop.db#orders').table
    ('orders',)
    >>> database_address("postgresql://ada@db/shop", 'sales."Orders 2024"').name
    'sales.Orders 2024'
    """
    refuse_password(uri)
    base, _, behind = uri.partition("#")
    scheme = str(scheme_of(uri))
    named = [one for one in (unquote(behind), table) if one]
    if len(named) > 1:
        raise OptionError("table_name", "names a table, and so does the address; keep one of them.")
    if named and query is not None:
        raise OptionError("query", "and --table both say what is read; keep one of them.")
    path = _file_in(base, scheme) if scheme in _OF_FILES else ""
    known = table_name(named[0]) if named else None
    select = None if query is None else _require_select(query)
    return Address(DATABASE_KINDS[scheme], base, path, known, select)


def _file_in(uri: str, scheme: str) -> str:
    begin = f"{scheme}:///"
    if not uri.lower().startswith(begin) or uri == begin or "?" in uri:
        raise ConfigError(
            f"{one_line(uri, 200)}: name the file of the database after three slashes, and "
            f"nothing else: {begin}folder/file.db, or {begin}/data/file.db"
        )
    path = unquote(uri[len(begin) :])
    if "\0" in path:
        raise ConfigError(f"{one_line(uri, 200)}: no file has such a name")
    return path


def _require_select(query: str) -> str:
    text = query.strip()
    words = _words(text).rstrip()
    if words.endswith(";"):
        text = text[: len(words.rstrip("; \t\r\n"))]
    if not _READS.match(text) or "\0" in text:
        raise OptionError("query", "must be a SELECT: no other statement is run.")
    return text


def _words(query: str) -> str:
    """Replace comments by spaces, and literals and quoted names by dots, keeping the length."""
    return _OPAQUE.sub(lambda found: (" " if found[1] else ".") * len(found[0]), query)


def _outermost(query: str) -> str:
    """Replace all text in parentheses by spaces, except for parentheses around the whole query."""
    depth, deep = 0, list[tuple[int, str]]()
    for sign in _words(query):
        depth += (sign == "(") - (sign == ")")
        deep.append((depth, " " if sign in "()" else sign))
    least = min((depth for depth, sign in deep if not sign.isspace()), default=0)
    return "".join(sign if depth == least else " " for depth, sign in deep)


def table_name(text: str) -> TableName:
    """Split ``schema.name``; a part that contains a dot must be in double quotes.

    >>> table_name('sales."a.b"')
    ('sales', 'a.b')
    """
    parts: list[str] = []
    place = 0
    while found := _PART.match(text, place):
        parts.append(found[2] if found[1] is None else found[1].replace('""', '"'))
        place = found.end()
        if text[place : place + 1] != ".":
            break
        place += 1
    if place < len(text) or not text or text.endswith(".") or len(parts) > 2:
        raise OptionError(
            "table_name",
            f"cannot be {one_line(text, 60)!r}: give name or schema.name; put a part with a dot "
            'or a quotation mark in "...", and double each quotation mark in it.',
        )
    return tuple(parts)


def typed(name: TableName) -> str:
    """Format the name of a table as a value of --table.

    >>> print(typed(("sales", "a.b")))
    sales."a.b"
    """
    return ".".join(sql_name(part) if {".", '"'} & {*part} else part for part in name)


def scheme_of_file(head: bytes) -> str | None:
    """Return the scheme of a database file by its first bytes; None for other files."""
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    return "duckdb" if head[8:12] == b"DUCK" else None


def sql_name(name: TableName | str) -> str:
    r"""Quote any name for SQL.

    >>> print(sql_name(("sales", 'a"; DROP TABLE b')))
    "sales"."a""; DROP TABLE b"
    """
    parts = (name,) if isinstance(name, str) else name
    return ".".join('"' + part.replace('"', '""') + '"' for part in parts)
