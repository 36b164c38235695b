"""What the benchmarks of the engine share: data, clocks, limits of the machine, peak memory.

Times are CPU seconds of one process with one thread for linear algebra; the best of several runs.
Memory is what a fresh process takes at its largest beyond what it had before the call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Before numpy is imported: one thread in every library, for us and for the peers.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy.spatial.distance import pdist  # noqa: E402

Matrix = NDArray[np.float64]
MIB = 2**20


def curved_rows(n: int, d: int = 20, seed: int = 0) -> Matrix:
    """Return rows near a curved surface of five dimensions."""
    rng = np.random.default_rng(seed)
    bend, bow = np.random.default_rng(1).normal(size=(2, 5, d)) / np.sqrt(5.0)
    latent = rng.normal(size=(n, 5))
    surface = np.sin(1.5 * latent @ bend) + 0.3 * (latent @ bow) ** 2
    return surface + 0.1 * rng.normal(size=(n, d))


def usual_gamma(X: Matrix) -> float:
    """Return one over the median squared distance."""
    return 1.0 / float(np.median(pdist(X[:500], "sqeuclidean")))


def cpu_seconds(function: Callable[[], object], repeats: int = 3) -> float:
    """Return the fewest CPU seconds of several calls."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        seconds.append(time.process_time() - start)
    return min(seconds)


def gemm_rate(dtype: str, m: int = 2048, k: int = 2048, n: int = 2048) -> float:
    """Return the floating point operations a second of a matrix product."""
    left = np.random.default_rng(0).random((m, k)).astype(dtype)
    right = np.random.default_rng(1).random((k, n)).astype(dtype)
    out = np.empty((m, n), dtype=dtype)
    return 2.0 * m * k * n / cpu_seconds(lambda: np.matmul(left, right, out=out), 5)


def exp_rate(dtype: str, rows: int = 512, columns: int = 1000) -> float:
    """Return the exponentials a second, in place, of numbers as a Gaussian kernel meets them."""
    exponents = -4.0 * np.random.default_rng(0).random((rows, columns)).astype(dtype)
    out = np.empty_like(exponents)
    return exponents.size / cpu_seconds(lambda: np.exp(exponents, out=out), 20)


def product_seconds(rows: int, d: int, m: int, columns: int, dtype: str) -> float:
    """Return the seconds a row takes at least: m exponents, exp, the product with columns."""
    rng = np.random.default_rng(0)
    left, right = rng.random((rows, d + 2), dtype), -0.1 * rng.random((d + 2, m), dtype)
    weights = rng.random((m, columns), dtype)
    kernel, out = np.empty((rows, m), dtype), np.empty((rows, columns), dtype)

    def products() -> None:
        np.matmul(left, right, out=kernel)
        np.exp(kernel, out=kernel)
        np.matmul(kernel, weights, out=out)

    return cpu_seconds(lambda: [products() for _ in range(20)], 5) / 20 / rows


def machine_line() -> str:
    """Return what this machine can do, in one line."""
    rates = [gemm_rate(dtype) / 1e9 for dtype in ("float32", "float64")]
    exps = [exp_rate(dtype) / 1e9 for dtype in ("float32", "float64")]
    return (
        f"machine, one thread: gemm {rates[0]:.0f} / {rates[1]:.0f} GFLOP/s, "
        f"exp {exps[0]:.2f} / {exps[1]:.2f} G/s (float32 / float64)"
    )


def memory_bytes(kind: str) -> int:
    """Return this process's memory (Linux): "VmRSS" now, "VmHWM" at its largest."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(kind):
            return int(line.split()[1]) * 1024
    return 0


def measured(function: Callable[[], object]) -> dict[str, float]:
    """Return CPU seconds of one call, and the memory it took beyond what there was before."""
    # Writing 5 forgets the largest so far, such as what making the data took.
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory_bytes("VmRSS")
    seconds = cpu_seconds(function, 1)
    return {"seconds": seconds, "bytes": float(memory_bytes("VmHWM") - before)}


def in_fresh_process(script: str, *arguments: object) -> dict[str, Any] | None:
    """Run ``script --worker arguments`` on its own; return the JSON it prints last.

    None where the process failed, for want of a library or of memory.
    """
    command = [sys.executable, script, "--worker", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print("   ", (done.stderr.strip().splitlines() or ["killed"])[-1][:110])
        return None
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer
