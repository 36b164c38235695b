"""Layout of a text or a sheet: delimiter (`lines`), `header`, and rows without data (`body`)."""
