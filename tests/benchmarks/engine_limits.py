"""What one thread of this machine does at most: products of the shapes the engine has, and exp.

python tests/benchmarks/engine_limits.py
"""

from __future__ import annotations

from engine_common import exp_rate, gemm_rate, machine_line

SHAPES = {
    "square, 2048": (2048, 2048, 2048),
    "exponents of a Gram tile, d = 20": (256, 22, 1024),
    "Gram tile times a block of 32": (256, 1024, 32),
    "exponents of a scored block, 1000 points": (384, 22, 1000),
    "scored block times [W | beta], q = 100": (384, 1000, 101),
    "sums over a block of 4096, 1000 landmarks": (1000, 4096, 1000),
    "step of 192 pre-images, 2000 points, d = 64": (192, 2000, 65),
}


def main() -> None:
    print(machine_line())
    print(f"{'GFLOP/s':>44} {'float32':>9} {'float64':>9}")
    for name, (m, k, n) in SHAPES.items():
        rates = [gemm_rate(dtype, m, k, n) / 1e9 for dtype in ("float32", "float64")]
        print(f"{name:>44} {rates[0]:9.1f} {rates[1]:9.1f}")
    for rows, columns in ((256, 1024), (384, 1000), (4096, 1000)):
        rates = [exp_rate(dtype, rows, columns) / 1e9 for dtype in ("float32", "float64")]
        print(f"{f'exp of {rows} x {columns}, G/s':>44} {rates[0]:9.2f} {rates[1]:9.2f}")


if __name__ == "__main__":
    main()
