"""Standard error while LibRaw reads."""

import os
import threading

from kpca_apps.images.raw import _without_stderr


def test_two_threads_put_standard_error_back() -> None:
    before = os.fstat(2)
    entered, left = threading.Event(), threading.Event()

    def other() -> None:
        with _without_stderr():
            entered.set()
            left.wait()

    thread = threading.Thread(target=other)
    with _without_stderr():
        thread.start()
        # Where both were let in, the other would keep, and put back, the void.
        assert not entered.wait(0.1)
    left.set()
    thread.join()
    assert os.path.samestat(before, os.fstat(2))
