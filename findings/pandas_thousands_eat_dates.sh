#!/usr/bin/env bash
# pandas 3.1.1: read_csv(sep=';', decimal=',', thousands='.') of a German export with a column of
# dates such as 1.2.2024.
# Guess before it was run: the date stays text, since it is no number in groups of three.
# Seen: the integer 122024, and the code 1.5 the integer 15: dots are taken out wherever they stand. A
# column of days of all months becomes a column of numbers without order, without a warning. polars
# keeps both as text.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pandas==3.1.1 polars==2.1.0
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import io

import pandas as pd
import polars as pl

text = "day;version;amount\n1.2.2024;1.5;1.234,50\n28.11.2024;1.6;7,25\n"
table = pd.read_csv(io.StringIO(text), sep=";", decimal=",", thousands=".")
print(table.to_dict("list"))
other = pl.read_csv(io.StringIO(text), separator=";", decimal_comma=True)
print(other.to_dict(as_series=False))
assert table["amount"].tolist() == [1234.5, 7.25]
assert table["day"].tolist() == [122024, 28112024], "fixed: dots in groups of three alone"
PYTHON
