"""The console script: nothing is imported before an interrupt can be answered."""

from __future__ import annotations

import gc
import signal
import sys

# Imports and figures make some hundred thousand objects that stay; with CPython's default of 700,
# looking for cycles among them takes a tenth of the time of a command on a small table.
NEW_OBJECTS = 100_000


def main() -> int:
    """Run the ``kpca`` command and return its exit code."""
    gc.set_threshold(NEW_OBJECTS)
    try:
        from kpca_apps.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted; nothing was written\n")
        return 130
    except ModuleNotFoundError as error:
        sys.stderr.write(
            f"error: the command needs {error.name}, which is not installed; install it with: "
            'pip install "kpca-apps[apps]"\n'
        )
        return 3
    code = run()
    # All is said; an interrupt now would only disturb how workers are tidied away.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code
