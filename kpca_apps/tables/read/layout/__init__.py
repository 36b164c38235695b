"""Layout of a text or sheet: delimiter (`lines`), `header`, and rows that are not data (`body`)."""
