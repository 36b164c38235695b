#!/usr/bin/env bash
# pandera 0.35.0: times with a zone, made into an Arrow array before and after pandera is imported.
# Guess before it was run: the same moment both times; a library of checks changes no conversion.
# Seen: after the import 09:00 in Tokyo is stored as if it were 09:00 UTC, nine hours late. On import
# pandera sets the environment variable PYARROW_IGNORE_TIMEZONE for Spark, also where pyspark is not
# installed, and pyarrow reads it at every conversion of Python objects. Child processes inherit it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q 'pandera[pandas]==0.35.0' pyarrow==26.0.1 tzdata
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa

moment = datetime(2020, 5, 1, 9, tzinfo=ZoneInfo("Asia/Tokyo"))
before = pa.array([moment])[0].as_py()
import pandera.pandas

after = pa.array([moment])[0].as_py()
print("given ", moment.astimezone(UTC))
print("before", before.astimezone(UTC))
print("after ", after.astimezone(UTC))
assert before == moment
assert (after - moment).total_seconds() == 9 * 3600, "fixed: the moment is kept"
PYTHON
