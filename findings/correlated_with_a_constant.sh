#!/usr/bin/env bash
# duckdb 2.0.1: pairs of columns by `where corr > .7`, one of the columns constant.
# Guess before it was run: corr() with a constant column is NULL, which no comparison lets through.
# Seen: it is NaN, and NaN is larger than all numbers in DuckDB: the constant column is the one most
# correlated with each other column.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q duckdb==2.0.1
"$folder/venv/bin/python" - <<'PYTHON'
import duckdb

pairs = duckdb.sql(
    "select * from (select 'constant' as pair, corr(x, 1.0) as r from range(100) t(x)"
    " union all select 'noise', corr(x, (x * 37) % 101) from range(100) t(x)"
    " union all select 'itself', corr(x, 2 * x) from range(100) t(x))"
    " where r > .7 order by r desc"
).fetchall()
print(pairs)
assert [name for name, _ in pairs] == ["constant", "itself"], "fixed: NULL"
PYTHON
