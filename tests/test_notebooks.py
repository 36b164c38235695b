"""A Jupyter kernel: interrupted within a cell, used again, and restarted."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

client = pytest.importorskip("jupyter_client", reason="jupyter_client is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

FIRST = """
import time
import numpy as np
from kpca_apps import KernelPCANovelty, denoise_kpca, screen_table
rng = np.random.default_rng(0)
X, image = rng.normal(size=(1500, 5)), 100 + 20 * rng.standard_normal((256, 256))
def everything():
    scores = KernelPCANovelty(n_jobs=2, random_state=0).fit(X).novelty_scores_
    found = screen_table({str(j): X[:, j] for j in range(5)}).rows.scores
    clean = denoise_kpca(image, sigma=20.0, data_range=255, quality="fast", n_jobs=2)
    return hash((scores.tobytes(), found.tobytes(), clean.tobytes()))
def interrupted():
    print("begun", flush=True)
    everything()
    time.sleep(60)  # An interrupt that comes late still comes within the cell.
print("ready")
"""

pytestmark = [
    pytest.mark.release,
    # Warnings of the Jupyter client libraries are no errors.
    pytest.mark.filterwarnings("default::DeprecationWarning", "default::ResourceWarning"),
]


@pytest.fixture
def kernel() -> Iterator[Any]:
    """Start a kernel; yield its manager and its client."""
    # The kernel inherits ignored interrupts if the tests run as a background job.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    manager, talk = client.manager.start_new_kernel(
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONHASHSEED": "0"}
    )
    yield manager, talk
    talk.stop_channels()
    manager.shutdown_kernel(now=True)
    signal.signal(signal.SIGINT, before)


def run(talk: Any, code: str, once_printed: Callable[[], object] = lambda: None) -> tuple[str, str]:
    """Return what a cell prints and its error's name; call `once_printed` whenever it prints."""
    printed: list[str] = []

    def hear(message: dict[str, Any]) -> None:
        if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
            printed.append(message["content"]["text"])
            once_printed()

    answer = talk.execute_interactive(code, output_hook=hear, timeout=300)
    return "".join(printed).strip(), answer["content"].get("ename", "")


def test_a_cell_may_be_interrupted_and_the_kernel_started_again(kernel: tuple[Any, Any]) -> None:
    manager, talk = kernel
    assert run(talk, FIRST) == ("ready", "")
    started = time.monotonic()
    expected = run(talk, "print(everything())")
    needed = time.monotonic() - started
    assert not expected[1]
    for share in (0.1, 0.3, 0.5, 0.7, 0.9):

        def interrupt(delay: float = share * needed) -> None:
            time.sleep(delay)
            manager.interrupt_kernel()

        # Interrupt only a running cell; between cells, the kernel would skip the next one.
        assert run(talk, "interrupted()", interrupt)[1] in ("", "KeyboardInterrupt")
    assert run(talk, "print(everything())") == expected
    manager.restart_kernel(now=True)
    talk.wait_for_ready(timeout=300)
    assert run(talk, FIRST) == ("ready", "") and run(talk, "print(everything())") == expected
