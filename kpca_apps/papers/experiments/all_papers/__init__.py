"""What is of no single paper: properties, formulas and methods."""
