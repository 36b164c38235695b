"""Rules of a table found: sought in a sample of its rows, and verified on all of them."""
