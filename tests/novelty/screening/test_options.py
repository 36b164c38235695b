from __future__ import annotations

import pytest

from kpca_apps.errors import ConfigError
from kpca_apps.novelty.columns.plan import ColumnOptions
from kpca_apps.novelty.detector.threshold import Rule
from kpca_apps.novelty.screening.model import ScreeningOptions, resolve_rule
from tests.system.model_parts import from_file


def test_without_a_rule_a_table_gets_a_share_and_a_clean_model_a_rate() -> None:
    assert resolve_rule(ScreeningOptions(), clean=False) == Rule("share", 0.01)
    assert resolve_rule(ScreeningOptions(), clean=True) == Rule("alpha", 0.05)
    assert resolve_rule(ScreeningOptions(), clean=True, default=Rule("count", 3)).name == "count"
    assert resolve_rule(ScreeningOptions(fdr=0.1), clean=True) == Rule("fdr", 0.1)


@pytest.mark.parametrize("rule", [{"alpha": 0.1}, {"fdr": 0.1}])
def test_a_rate_without_clean_rows_is_refused_with_the_reason(rule: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="no calibrated rate exists without clean rows"):
        resolve_rule(ScreeningOptions(**rule), clean=False)


@pytest.mark.parametrize(
    "rule",
    [
        {"share": 0.0},
        {"share": 1.0},
        {"share": float("nan")},
        {"count": 0},
        {"count": 10**400},
        {"count": 1.5},
        {"alpha": 1.5},
    ],
)
def test_a_rule_outside_its_range_is_refused(rule: dict[str, float]) -> None:
    name = next(iter(rule))
    with pytest.raises(ConfigError, match=f"^--{name} must be"):
        resolve_rule(ScreeningOptions(**rule), clean=True)  # type: ignore[arg-type]


def test_two_rules_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="--share and --fdr exclude each other"):
        resolve_rule(ScreeningOptions(share=0.1, fdr=0.1), clean=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"explain": -1}, "--explain must be at least 0"),
        ({"n_components": -1}, "--components must be at least 0"),
        ({"n_landmarks": 1}, "--landmarks must be at least 2"),
        ({"seed": -1}, "--seed must be at least 0"),
        ({"seed": 2**32}, "--seed must be at most 4,294,967,295"),
        ({"seed": 10**6000}, "--seed must be at most .* got a number of thousands"),
        ({"seed": 1.5}, "--seed must be a whole number"),
        ({"jobs": 0}, "--jobs must be at least 1"),
        ({"jobs": 10**9}, "--jobs must be at most 1,024"),
        ({"ridge": 5e-324}, "--ridge must be at least 1e-12"),
        ({"ridge": 1e308}, "--ridge must be at most 1e[+]12"),
        ({"ridge": float("inf")}, "--ridge must be at most"),
        ({"ridge": float("nan")}, "--ridge must be a number, got nan"),
        ({"ridge": "x"}, "--ridge must be a number, got x"),
        ({"kernel": "rbf", "gamma": 0.0}, "--gamma must be at least 1e-200"),
        ({"kernel": "rbf", "gamma": float("inf")}, "--gamma must be at most"),
        ({"kernel": "rbf", "sigma": 1e-200}, "--sigma must be at least"),
        ({"kernel": "rbf", "sigma": 1e200}, "--sigma must be at most"),
        ({"kernel": "rbf", "gamma": 1.0, "sigma": 1.0}, "--gamma and --sigma both"),
        ({"kernel": "rfb"}, '--kernel must be rbf, .* Did you mean "rbf"'),
        ({"kernel": "laplacian"}, "needs a width"),
        ({"kernel": "linear", "gamma": 1.0}, "has no width"),
        (
            {"kernel": "rbf", "n_components": 3, "ridge": 0.1},
            "--ridge belongs to the Tikhonov filter",
        ),
        ({"n_components": 3, "calibration": "leave-one-out"}, "Tikhonov filter only"),
        ({"gamma": 1.0}, "name it too"),
        ({"calibration": "loo"}, "--calibration must be auto, leave-one-out, split"),
        ({"positive": "x"}, "give the --label too"),
    ],
)
def test_contradicting_options_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ScreeningOptions(**options)  # type: ignore[arg-type]


def test_options_survive_a_file() -> None:
    columns = ColumnOptions(label="y", exclude=("a", "b"), dayfirst=True)
    options = ScreeningOptions(fdr=0.1, columns=columns, positive="yes", seed=7)
    assert from_file(options) == options
