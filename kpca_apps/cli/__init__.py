"""The ``kpca`` command."""
