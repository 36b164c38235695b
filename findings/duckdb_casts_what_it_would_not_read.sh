#!/usr/bin/env bash
# DuckDB 2.0.1: codes such as 1_000 and 0x10 in a column, read by read_csv and cast to INTEGER.
# Guess before it was run: both are read as text, and TRY_CAST gives NULL.
# Seen: 1_000 is read as text and cast to 1000; 0x10 is read as the number 16, and cast to it. So one
# code is text in one place and a number in the other, and the other has lost its form on the way in.
# Codes pass for numbers in a rule that casts.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q duckdb==2.0.1
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import pathlib

import duckdb

for text, number, read_as in (("1_000", 1000, "VARCHAR"), ("0x10", 16, "BIGINT")):
    pathlib.Path("codes.csv").write_text(f"code,x\n{text},1\n{text},2\n")
    kind = duckdb.execute("select typeof(code) from read_csv('codes.csv')").fetchone()[0]
    cast = duckdb.execute(f"select try_cast('{text}' as integer)").fetchone()[0]
    print(text, "is read as", kind, "and cast to", cast)
    assert (kind, cast) == (read_as, number), "changed: how codes are read or cast"
PYTHON
