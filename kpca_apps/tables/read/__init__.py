"""Readers: one a kind of file.

`reader` is what a reader is; `text`, `delimited`, `excel`, `json`, `arrow`, `parquet`, `delta` and
`hive` read files, `remote` and `uri` what is named by an address. Of a text or a sheet `layout/`
finds the header and what is no data.
"""
