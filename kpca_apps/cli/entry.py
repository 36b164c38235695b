"""The console script: nothing is imported before an interrupt can be answered."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the ``kpca`` command and return its exit code."""
    try:
        from kpca_apps.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted; nothing was written\n")
        return 130
    code = run()
    # All is said; an interrupt now would only disturb how workers are tidied away.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code
