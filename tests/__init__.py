"""Tests of the package; themselves a package, so that no installed `tests` shadows them."""
