"""Tests of the package; a package itself, so that no other of this name is taken for it."""
