"""Malformed and malicious tables, generated on the spot and never stored.

`NAMES` and `CELLS` are texts that the package must preserve. `SURVIVABLE` are files that must be
read, each with its expected shape. `BROKEN` are files that must be refused in one line, each with
words of that line.
"""

import bz2
import gzip
import io
import lzma
import zipfile

NAMES: tuple[str, ...] = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    '=HYPERLINK("http://x.invalid","y")',
    "@SUM(1+1)",
    "height\n(cm)",
    "name\r\nwith return",
    "x" * 300,
    "\u202egnp.exe",
    "\u05e9\u05dc\u05d5\u05dd",
    "\U0001f427 \u00e9\u0301",
    "$E = mc^2$ \\frac{1}",
    " padded ",
    "novelty_score",
    "__proto__",
    "../../etc/passwd",
    "null",
)

CELLS: tuple[str, ...] = (
    "</script><script>alert(1)</script>", "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@x", "\t=1",
    "\uff1d1+1", 'say "hi", then\nleave', "&amp;<b>bold</b>", "\u202edlrow", "nan",
    "'; DROP TABLE t; --",
)  # fmt: skip


def quote(cell: str) -> str:
    """Quote one cell as in RFC 4180."""
    return '"' + cell.replace('"', '""') + '"'


def as_csv(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> bytes:
    return "".join(",".join(map(quote, row)) + "\n" for row in [header, *rows]).encode("utf-8")


def hostile_csv(n_rows: int = 60) -> bytes:
    """Return a table with numbers under each hostile name, and with a column of hostile cells."""
    rows = [
        (
            *(str((17 * row + 7 * column) % 23 / 4) for column in range(len(NAMES))),
            CELLS[row % len(CELLS)],
        )
        for row in range(n_rows)
    ]
    return as_csv((*NAMES, "cells"), rows)


def bomb(n_bytes: int) -> bytes:
    """Gzip a table of equal rows, which expands about a thousandfold."""
    row = b"1,2\n"
    return gzip.compress(b"a,b\n" + row * (n_bytes // len(row)), mtime=0)


def zipped(*files: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return buffer.getvalue()


def encrypted(archive: bytes) -> bytes:
    """Mark the only file of an archive as encrypted."""
    out, index = bytearray(archive), archive.find(b"PK\x01\x02")
    out[6] |= 1
    out[index + 8] |= 1
    return bytes(out)


_FEW = b"a,b\n1,2\n3,4\n"

SURVIVABLE: dict[str, tuple[bytes, tuple[int, int]]] = {
    "semicolons_with_decimal_commas": (b"a;b\n1,5;2,5\n3,5;4,5\n", (2, 2)),
    "semicolons_without_header": (b"1,5;2,5\n3,5;4,5\n", (2, 2)),
    "one_column_of_decimal_commas": (b"a\n1,5\n2,5\n", (2, 1)),
    "one_column_of_prose": (b"remark\nwell, yes\nno\nI see, but, no\nfine\n", (4, 1)),
    "one_column_of_two_words": (b"full name\nJohn Smith\nJane Doe\n", (2, 1)),
    "bars": (b"a|b\nx, y|1\nz|2\n", (2, 2)),
    "tabs_with_commas": (b"a\tb\n1,234\t5\n6,789\t0\n", (2, 2)),
    "runs_of_spaces": (b" 1.0   2.0\n 10.0  4.0 \n", (2, 2)),
    "old_macintosh_line_ends": (b"a,b\r1,2\r3,4\r", (2, 2)),
    "excel_separator_line": (b"sep=;\r\na;b\r\n1;2\r\n", (1, 2)),
    "blank_lines_all_over": (b"\n\na,b\n\n1,2\n \n3,4\n\n\n", (2, 2)),
    "no_last_newline": (b"a,b\n1,2", (1, 2)),
    "mark_and_windows_line_ends": (b"\xef\xbb\xbfa,b\r\n1,\"2\r\n\"\r\n", (1, 2)),
    "stray_quotes": (b'a,b\n5" pipe,2\n6",3\n', (2, 2)),
    "comment_signs": (b"#a,b\n#1,2\n", (1, 2)),
    "utf16": ("a,b\n\u00e9,\U0001f427\n".encode("utf-16"), (1, 2)),
    "utf16_big_endian": (b"\xfe\xff" + "a,b\n1,2\n".encode("utf-16-be"), (1, 2)),
    "cp1252": (b"a,b\ncaf\xe9,\x80\n", (1, 2)),
    "empty_cells": (b"a,b\n,1\n1,\n", (2, 2)),
    "named_like_parquet": (b"PAR1,PK\n1,2\n", (1, 2)),
    "empty_and_repeated_names": (b"a,,a,,a\n1,2,3,4,5\n", (1, 5)),
    "gzip": (gzip.compress(b"a,b\n1,2\n", mtime=0), (1, 2)),
    "gzip_in_two_members": (
        gzip.compress(b"a,b\n1,2\n", mtime=0) + gzip.compress(b"3,4\n", mtime=0),
        (2, 2),
    ),
    "bzip2_in_two_streams": (bz2.compress(b"a,b\n1,2\n") + bz2.compress(b"3,4\n"), (2, 2)),
    "xz_in_two_streams": (lzma.compress(b"a,b\n1,2\n") + lzma.compress(b"3,4\n"), (2, 2)),
    "zip": (zipped(("t.csv", _FEW)), (2, 2)),
    "zip_of_a_folder_with_hidden_files": (
        zipped(("d/", b""), ("d/t.csv", _FEW), ("__MACOSX/d/._t.csv", b"x"), ("d/.DS_Store", b"x")),
        (2, 2),
    ),
    "zip_that_is_not_packed_and_names_a_workbook": (
        zipped(("xl/t.csv", b"a,b\nxl/workbook.xml,2\n"), method=zipfile.ZIP_STORED), (1, 2),
    ),
    "zip_of_packed_text": (zipped(("t.csv.gz", gzip.compress(_FEW, mtime=0))), (2, 2)),
    "zip_packed_with_lzma": (zipped(("t.csv", _FEW), method=zipfile.ZIP_LZMA), (2, 2)),
    "wide": (b"c" + b",c" * 2999 + b"\n" + b"1" + b",1" * 2999, (1, 3000)),
    "hostile": (hostile_csv(), (60, len(NAMES) + 1)),
}  # fmt: skip

_MANY = b"1,2\n" * 5000
BROKEN: dict[str, tuple[bytes, str]] = {
    "only_empty_cells": (b"a,b\n,\n,\n", "no rows were read"),
    "empty": (b"", "empty"),
    "only_blank_lines": (b"\n \n\r\n", "empty"),
    "only_a_mark": (b"\xef\xbb\xbf", "empty"),
    "only_a_blank_cell": (b'"\n"\n', "line 1 should name the columns"),
    "header_only": (b"a,b\n", "line 1 is a header without rows"),
    "blank_header": (b"\n,,\n1,2,3\n", "line 3 is a header without rows"),
    "short_row": (b"a,b\n\n1,2\n3\n", "line 4 has 1 cell where line 1 has 2"),
    "long_row": (b'a,b\n"x\ny",2\n3,4,5\n', "line 4 has 3 cells where line 1 has 2"),
    "short_row_after_stray_quote": (b'a,b\n5",1\n3\n', "line 3 has 1 cell where line 1 has 2"),
    "late_short_row": (b"a,b\n\n" + _MANY + b"3\n" + _MANY, "line 5003 has 1 cell where line 1"),
    "late_long_row": (b"a,b\n" + _MANY + b"3,4,5\n" + _MANY, "line 5002 has 3 cells where line 1"),
    "late_row_of_two_lines": (b"a,b\n" + _MANY + b'"3\n4"\n' + _MANY, "line 5002 has 1 cell where"),
    "open_quote": (b'a,b\n1,2\n"x,3\n4,5\n', "line 3 opens a quote that is never closed"),
    "text_after_quote": (b'a,b\n1,2\n"x"y,3\n', "line 3 has text after a closing quote"),
    "carriage_return_in_a_row": (b'a,b\n1",2\r3\n', "line 2 holds a carriage return"),
    "carriage_return_after_a_quote": (b'a,b\n,"x"\r1\n', "line 2 holds a carriage return"),
    "title_above_semicolons": (b"title\n" + b"1;2\n" * 30, "line 2 has 2 cells where line 1 has 1"),
    "zero_bytes": (b"a,b\n1,\x00\n", "line 2, byte 7 (0x00)"),
    "undefined_in_cp1252": (b"a,b\n1,2\n\x81,3\n", "line 3, byte 9 (0x81)"),
    "half_a_utf16_pair": (b"\xff\xfea\x00\n\x00\x00\xd8", "is not utf-16"),
    "cut_gzip": (gzip.compress(b"a,b\n1,2\n" * 9, mtime=0)[:-9], "gzip data are damaged"),
    "gzip_twice": (gzip.compress(gzip.compress(b"a,b\n", mtime=0), mtime=0), "gzip twice"),
    "web_page": (b"<!DOCTYPE html>\n<table><tr><td>1</table>", "web or XML page"),
    "zip": (b"PK\x03\x04\x00\x00", "not a readable zip file"),
    "empty_zip": (zipped(), "holds 0 files"),
    "zip_of_two_tables": (zipped(("a.csv", _FEW), ("b.csv", _FEW)), "2 files (a.csv, b.csv)"),
    "zip_with_a_hostile_name": (
        zipped(("a\n\u202e.csv", _FEW), ("b" * 9000, _FEW)), "holds 2 files (a\\n\\u202e.csv, bbb",
    ),
    "zip_in_a_zip": (zipped(("b.zip", zipped(("a.csv", _FEW)))), "b.zip: this is a zip archive"),
    "zip_in_gzip": (gzip.compress(zipped(("a.csv", _FEW)), mtime=0), "this is a zip archive"),
    "encrypted_zip": (encrypted(zipped(("a.csv", _FEW))), "a.csv in it is encrypted"),
    "cut_zip": (zipped(("a.csv", _FEW))[:-30], "not a readable zip file"),
    "damaged_zip": (
        zipped(("a.csv", _FEW)).replace(b"a.csv", b"b.csv", 1), "b.csv' differ",
    ),
    "zip_with_a_bad_row": (zipped(("a.csv", b"a,b\n1\n")), "a.csv: line 2 has 1 cell"),
    "cut_bzip2": (bz2.compress(_FEW * 9)[:-5], "bzip2 data are damaged"),
    "cut_xz": (lzma.compress(_FEW * 9)[:-9], "xz data are damaged"),
    "cut_zstd": (b"\x28\xb5\x2f\xfd\x04\x00", "zstd data are damaged"),
    "cut_arrow": (b"ARROW1\0\0" + bytes(90), "not a readable Arrow file"),
    "cut_arrow_stream": (b"\xff\xff\xff\xff\x70\0\0\0", "not a readable Arrow file"),
    "arrow_with_an_index_of_any_length": (
        b"ARROW1\0\0" + bytes(90) + b"\xff\xff\xff\x7fARROW1", "not a readable Arrow file",
    ),
    "ends_of_parquet": (b"PAR1PAR1", "not a readable Parquet file"),
    "long_name": (b"a," + b"b" * 200_000 + b"\n1,2\n", "line 1 has a cell of more than 131,072"),
    "long_cell_after_stray_quote": (
        b'a,b\n1,5" ' + b"x" * 200_000 + b"\n", "line 2 has a cell of more than 131,072",
    ),
    "separator_line_and_nothing": (b"sep=;\n\n \n", "nothing but blank cells"),
    "cut_parquet": (b"PAR1\x00\x00\x00\x00", "not a readable Parquet file"),
    "cut_workbook": (b"PK\x03\x04\x00\x00xl/workbook.xml", "not a readable Excel file"),
    "opendocument": (
        b"PK\x03\x04" + bytes(26) + b"mimetypeapplication/vnd.oasis.opendocument",
        "save it as .xlsx or CSV",
    ),
    "cut_old_workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\x00" * 600, "Excel"),
    "broken_json": (b'{"a": 1}\n{"a": \n', "line 2, column"),
    "json_that_is_no_object": (b'{"a": 1}\n[1]\n', "line 2 is not a JSON object"),
    "json_with_a_key_twice": (b'{"a": 1, "a": 2}\n', "line 1: a key occurs twice"),
    "json_nested_without_end": (b'{"a": 1}\n' + b'{"a":' * 99999, "line 2 is nested too deeply"),
    "json_with_half_a_pair": (b'{"a": "\\ud800"}\n', "line 1 holds half a surrogate pair"),
    "json_without_keys": (b"{}\n{}\n", "no line holds a key"),
    "json_with_a_number_without_end": (b'{"a": ' + b"9" * 9999 + b"}\n{}\n", "line 1"),
}  # fmt: skip
