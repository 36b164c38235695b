"""Rules of a table, found in a sample of its rows and checked on all of them."""
