"""Tables and models in, results out: reading, typing and writing files."""
