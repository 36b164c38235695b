"""Invalid values of every numeric parameter of the package are refused in one line."""

import inspect
import re

import numpy as np
import polars as pl
import pytest

import kpca_apps as kpca
from kpca_apps.errors import KpcaError

NOT_NUMBERS = (10**400, -(10**400), float("nan"), -float("inf"), True, np.True_, object(), 1j, [[]])
RNG = np.random.default_rng(0)
IMAGE = 100 + 5 * RNG.standard_normal((16, 16))
ROWS = RNG.standard_normal((20, 2))
FRAME = pl.DataFrame(ROWS, schema=["a", "b"])
MODEL = kpca.fit_model(FRAME)
EXAMPLES = [RNG.random((8, 8)) for _ in range(20)]
# Numeric parameters that are not annotated as numbers.
UNANNOTATED = {"noise", "random_state"}
# A Delta table's version and a sheet have separate tests.
NOT_THESE = {"as_of", "sheet"}


def estimator(kind, **fixed):
    return kind, lambda **keywords: kind(**(fixed | keywords)).fit(ROWS)


CALLABLES = {
    "screen_table": (kpca.screen_table, lambda **k: kpca.screen_table(FRAME, **k)),
    "fit_model": (kpca.fit_model, lambda **k: kpca.fit_model(FRAME, **k)),
    "score_table": (kpca.score_table, lambda **k: kpca.score_table(MODEL, FRAME, **k)),
    "find_rules": (kpca.find_rules, lambda **k: kpca.find_rules(FRAME, **k)),
    "check_rules": (
        kpca.check_rules,
        lambda **k: kpca.check_rules(FRAME, kpca.find_rules(FRAME), **k),
    ),
    "open_table": (kpca.open_table, lambda **k: kpca.open_table("none.csv", **k)),
    "read_table": (kpca.read_table, lambda **k: kpca.read_table("none.csv", **k)),
    "denoise_kpca": (kpca.denoise_kpca, lambda **k: kpca.denoise_kpca(IMAGE, **_method(k))),
    "measure_noise": (kpca.measure_noise, lambda **k: kpca.measure_noise(IMAGE, **k)),
    "denoise_mosaic": (kpca.denoise_mosaic, lambda **k: kpca.denoise_mosaic(IMAGE, **k)),
    "DictionaryDenoiser": (
        kpca.DictionaryDenoiser,
        lambda **k: kpca.DictionaryDenoiser(**k).fit(EXAMPLES),
    ),
    "KernelPCA": estimator(kpca.KernelPCA),
    "KernelPCANovelty": estimator(kpca.KernelPCANovelty),
    "Workers": (kpca.Workers, lambda **k: kpca.Workers(**k)),
    "run_batch": (
        kpca.run_batch,
        lambda **k: kpca.run_batch(["none.png"], "none", {}, denoise=None, **k),
    ),
}


def _method(keywords):
    return ({"method": "rbf"} if "bandwidth" in keywords else {}) | keywords


def cases():
    for name, (function, _) in CALLABLES.items():
        for keyword, parameter in inspect.signature(function).parameters.items():
            is_text = parameter.default in ("auto", "balanced", "same", "tiff")
            is_number = re.search(r"\b(int|float)\b", str(parameter.annotation))
            if (is_number or (keyword in UNANNOTATED and not is_text)) and keyword not in NOT_THESE:
                yield pytest.param(name, keyword, id=f"{name}-{keyword}")


@pytest.mark.parametrize(("face", "keyword"), [*cases()])
@pytest.mark.filterwarnings("ignore")
def test_invalid_numbers_are_refused_in_a_line_that_names_the_keyword(face, keyword):
    for value in [*NOT_NUMBERS, *[10**9] * (keyword in ("jobs", "n_jobs", "n_workers"))]:
        with pytest.raises((KpcaError, ValueError)) as caught:
            CALLABLES[face][1](**{keyword: value})
        text = str(caught.value)
        assert not isinstance(caught.value, OverflowError | np.linalg.LinAlgError)
        assert keyword in text.replace("-", "_") and "\n" not in text, text[:200]
