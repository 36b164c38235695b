#!/usr/bin/env bash
# astropy 8.0.2: Table.read(format='ascii') of a comma-separated table whose rows end in a comma, as
# some instruments write them.
# Guess before it was run: an error, or a third column without a name.
# Seen: one column, called 'a,b', of texts. The guess tries one format after another until one fits,
# and a table without any delimiter always does. No warning.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q astropy==8.0.2
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
from astropy.table import Table

table = Table.read("a,b\n1,2,\n3,4,\n", format="ascii")
print(table.colnames, [tuple(row) for row in table])
assert table.colnames == ["a,b"], "fixed: two columns, or an error"
assert Table.read("a,b\n1,2\n3,4\n", format="ascii").colnames == ["a", "b"]
PYTHON
