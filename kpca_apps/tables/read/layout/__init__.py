"""How a text or a sheet is laid out.

`lines` says what cuts the rows of a text, `header` which row names the columns, `body` which rows
below are no data.
"""
