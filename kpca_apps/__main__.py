"""``python -m kpca_apps``: the ``kpca`` command."""

from kpca_apps.cli.entry import main

if __name__ == "__main__":
    raise SystemExit(main())
