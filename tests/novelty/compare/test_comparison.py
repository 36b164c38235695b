from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from kpca_apps.errors import ConfigError, InputError
from kpca_apps.novelty.compare.baselines import RIVALS
from kpca_apps.novelty.compare.comparison import OURS, compare_table
from kpca_apps.novelty.screening.options import ScreeningOptions
from kpca_apps.novelty.screening.run import screen_table
from kpca_apps.novelty.table.columns import ColumnOptions
from tests.novelty.tables import correlated

OPTIONS = ScreeningOptions(columns=ColumnOptions(label="kind", id="name"), positive="odd")


def test_two_settings_with_ours_first_and_every_rival() -> None:
    result = compare_table(correlated(120, odd=12), OPTIONS)
    everything, half = result.evaluations
    for evaluation in result.evaluations:
        assert [m.name for m in evaluation.methods] == [OURS, *(r.name for r in RIVALS)]
        assert evaluation.n_positive == 12
    assert (everything.n_rows, half.n_rows) == (120, 120 - 54)
    assert "half of the normal rows (54)" in half.setting


def test_ours_is_judged_by_the_scores_of_a_screening() -> None:
    table = correlated(120, odd=12)
    screened = screen_table(table, options=OPTIONS)
    outlier = np.arange(120) >= 108
    compared = compare_table(table, OPTIONS).evaluations[0].methods[0]
    assert compared.auroc == pytest.approx(roc_auc_score(outlier, screened.scores))


def test_the_same_seed_gives_the_same_areas() -> None:
    table = correlated(80, odd=8)
    areas = [
        [(m.auroc, m.auprc) for e in compare_table(table, OPTIONS).evaluations for m in e.methods]
        for _ in range(2)
    ]
    assert areas[0] == areas[1]


def test_too_few_normal_rows_leave_one_setting_and_say_so() -> None:
    result = compare_table(correlated(12, odd=8), OPTIONS)
    assert len(result.evaluations) == 1
    assert "4 normal rows are too few" in result.warnings[-1]


def test_a_label_is_needed_and_must_have_two_values() -> None:
    with pytest.raises(ConfigError, match="name the label column"):
        compare_table(correlated(20))
    with pytest.raises(InputError, match='only the value "usual"'):
        compare_table(correlated(20), ScreeningOptions(columns=ColumnOptions(label="kind")))
