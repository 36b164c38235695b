"""
A clean reference and a false-alarm rate
========================================

With rows that are known to be normal, the threshold means something: at ``alpha=0.05`` about five
in a hundred normal rows are flagged.
"""

import matplotlib.pyplot as plt
import numpy as np

from kpca_apps import KernelPCANovelty

rng = np.random.default_rng(0)


def ring(n_rows):
    """Points around a circle: normal is what lies on the ring, not what lies near the mean."""
    angle = rng.uniform(0, 2 * np.pi, n_rows)
    radius = 1 + 0.1 * rng.normal(size=n_rows)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


clean, new = ring(500), ring(1000)
outliers = rng.uniform(-0.5, 0.5, (50, 2))

detector = KernelPCANovelty(contaminated=False, alpha=0.05, random_state=0).fit(clean)
print(f"false alarms: {np.mean(detector.predict(new) == -1):.1%} of new normal rows")
print(f"found: {np.mean(detector.predict(outliers) == -1):.0%} of the outliers")

# %%
# Scores are higher for more normal rows, as everywhere in scikit-learn. The region below the
# threshold is hollow: the middle of the ring is novel, though it is the mean of all rows.

axis = np.linspace(-1.8, 1.8, 80)
grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
decision = detector.decision_function(grid).reshape(80, 80)

figure, axes = plt.subplots(figsize=(5, 5), layout="constrained")
axes.contourf(axis, axis, decision, levels=[0, np.inf], colors=["#dce9f5"])
axes.contour(axis, axis, decision, levels=[0], colors=["#1f5c99"])
axes.scatter(*clean.T, s=6, color="#1f5c99", label="clean reference")
axes.scatter(*outliers.T, s=12, color="#b5442e", label="outliers")
axes.legend(loc="upper right")
axes.set_aspect("equal")

# %%
# ``p_values`` say how rare each row is among rows like the reference. They can be combined with a
# false discovery rate: on the command line ``--reference clean.csv --fdr 0.1``.

detector.p_values(outliers)[:5]
