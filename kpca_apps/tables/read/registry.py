"""The readers of tables: a new one is a file of its own, and a line here."""

from __future__ import annotations

from kpca_apps.tables.input_file import InputFile
from kpca_apps.tables.read.arrow import ARROW
from kpca_apps.tables.read.delimited import DELIMITED
from kpca_apps.tables.read.excel import EXCEL
from kpca_apps.tables.read.json import JSON
from kpca_apps.tables.read.parquet import PARQUET
from kpca_apps.tables.read.reader import Reader
from kpca_apps.tables.read.text import Text

# The first that knows a file reads it; what none knows is text, and the last reads any text.
FILE_READERS: list[Reader[InputFile]] = [PARQUET, ARROW, EXCEL]
TEXT_READERS: list[Reader[Text]] = [JSON, DELIMITED]
