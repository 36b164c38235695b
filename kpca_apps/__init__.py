"""Kernel PCA at work: novelty detection in tables and denoising of images, on one engine.

The public names are loaded when first used, so that ``import kpca_apps`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kpca_apps.api import (
        Screening,
        check_rules,
        find_rules,
        fit_model,
        score_table,
        screen_table,
    )
    from kpca_apps.denoise.batch.run import run_batch
    from kpca_apps.denoise.denoiser import (
        DenoiseInfo,
        denoise_kpca,
        denoise_with_info,
        measure_noise,
    )
    from kpca_apps.denoise.dictionary import DictionaryDenoiser
    from kpca_apps.denoise.mosaic import denoise_mosaic
    from kpca_apps.engine.kernel_pca import KernelPCA
    from kpca_apps.errors import (
        ConfigError,
        InputError,
        KpcaError,
        KpcaWarning,
        MemoryLimitError,
        ModelFileError,
        OptionError,
        RefusedError,
        StoppedError,
    )
    from kpca_apps.novelty.columns.parts import Execution
    from kpca_apps.novelty.detector.estimator import KernelPCANovelty
    from kpca_apps.novelty.relations.results import RuleCheck, Rules
    from kpca_apps.novelty.screening.model import load_model, save_model
    from kpca_apps.system.workers import Workers
    from kpca_apps.tables.opening import open_table, read_table

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "DenoiseInfo",
    "DictionaryDenoiser",
    "Execution",
    "InputError",
    "KernelPCA",
    "KernelPCANovelty",
    "KpcaError",
    "KpcaWarning",
    "MemoryLimitError",
    "ModelFileError",
    "OptionError",
    "RefusedError",
    "RuleCheck",
    "Rules",
    "Screening",
    "StoppedError",
    "Workers",
    "__version__",
    "check_rules",
    "denoise_kpca",
    "denoise_mosaic",
    "denoise_with_info",
    "find_rules",
    "fit_model",
    "load_model",
    "measure_noise",
    "open_table",
    "read_table",
    "run_batch",
    "save_model",
    "score_table",
    "screen_table",
]

_NAMES = {  # by the module they are in
    "api": "Screening check_rules find_rules fit_model score_table screen_table",
    "denoise.batch.run": "run_batch",
    "denoise.denoiser": "DenoiseInfo denoise_kpca denoise_with_info measure_noise",
    "denoise.dictionary": "DictionaryDenoiser",
    "denoise.mosaic": "denoise_mosaic",
    "engine.kernel_pca": "KernelPCA",
    "errors": "ConfigError InputError KpcaError KpcaWarning MemoryLimitError ModelFileError "
    "OptionError RefusedError StoppedError",
    "novelty.columns.parts": "Execution",
    "novelty.detector.estimator": "KernelPCANovelty",
    "novelty.relations.results": "RuleCheck Rules",
    "novelty.screening.model": "load_model save_model",
    "system.workers": "Workers",
    "tables.opening": "open_table read_table",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}


# A type checker, for which every name would be there, has the imports above.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
