"""List the steps of `golden`: command lines, and calls of the public API.

In a command line ``@`` stands for the step's own folder, and ``;`` begins another command. Inputs
are in ``in/``, as `golden_data` makes them.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import tifffile
from golden_data import mixed, picture, seen_by_sensor, typed

import kpca_apps as kpca

SCREEN, DENOISE = "novelty screen", "denoise run"
COMMANDS = {
    "screen-semicolon": f"{SCREEN} in/semicolon.csv --json --format same --out @/o",
    "screen-tsv-words": f"{SCREEN} in/mixed.tsv --share 0.05 --format same --out @/o",
    "screen-gz": f"{SCREEN} in/mixed.csv.gz --count 6 --json --format same --out @/o",
    "screen-utf16": f"{SCREEN} in/wide.csv --by plot --json --format same --out @/o",
    "screen-json": f"{SCREEN} in/list.json --flagged xlsx --count 8 --json --out @/o",
    "screen-lines": f"{SCREEN} in/lines.jsonl --label known --positive 1 --json --out @/o",
    "screen-xlsx": f"{SCREEN} in/book.xlsx --sheet sizes --flagged xlsx --json --out @/o",
    "screen-parquet": f"{SCREEN} in/typed.parquet --format same --hide mass --json --out @/o",
    "screen-arrow": f"{SCREEN} in/typed.arrow --format parquet --by site --json --out @/o",
    "screen-feather": f"{SCREEN} in/typed.feather --exclude seen --numeric count --json --out @/o",
    "screen-folder": f"{SCREEN} in/parts --share 0.02 --json --out @/o",
    "screen-titled": f"{SCREEN} in/titled.csv --bad-lines skip --dayfirst --json --out @/o",
    "screen-penguins": f"{SCREEN} in/penguins_faults.csv --explain 10 --share 0.05 --json "
    "--out @/o",
    "screen-numbers": f"{SCREEN} in/breast_cancer.csv --label diagnosis --positive malignant "
    "--share 0.3 --out @/o",
    "screen-accept": f"{SCREEN} in/mixed.csv --accept in/accept.csv --json --out @/o",
    "screen-hidden": f"{SCREEN} in/mixed.csv --hide girth --hide tree --id tree --out @/o",
    "screen-keep-hidden": f"{SCREEN} in/mixed.csv --hide kind --keep-hidden --flagged xlsx "
    "--explain 0 --json --out @/o",
    "screen-alpha": f"{SCREEN} in/mixed.csv --reference in/clean.csv --alpha 0.01 --json --out @/o",
    "screen-fdr": f"{SCREEN} in/mixed.csv --reference in/clean.csv --fdr 0.2 --label known "
    "--positive odd --by plot --calibration split --json --out @/o",
    "screen-rbf": f"{SCREEN} in/ring_line_square.csv --method hoffmann --sigma 0.4 --components 40 "
    "--label noise --positive yes --json --out @/o",
    "screen-landmarks": f"{SCREEN} in/ring_line_square.csv --landmarks 80 --exclude noise "
    "--seed 3 --ridge 0.01 --json --out @/o",
    "screen-dry-run": f"{SCREEN} in/mixed.csv --dry-run;{SCREEN} in/mixed.csv --dry-run --json",
    "fit-score": "novelty fit in/clean.csv --model @/m.kpca --alpha 0.02 --json;"
    "novelty score @/m.kpca in/later.csv --json --out @/o;"
    "novelty score @/m.kpca in/mixed.csv --fdr 0.1 --accept in/accept.csv --out @/p;"
    "novelty explain @/m.kpca in/later.csv --row 3;"
    "novelty explain @/m.kpca in/later.csv --line 12 --json",
    "fit-score-groups": "novelty fit in/typed.parquet --by site --id id --label known --fdr 0.1 "
    "--model @/m.kpca;novelty score @/m.kpca in/typed.arrow --format same --json --out @/o;"
    "novelty explain @/m.kpca in/typed.arrow --row 1007",
    "fit-share-groups": "novelty fit in/clean.csv --by plot --share 0.02 --model @/m.kpca;"
    "novelty score @/m.kpca in/later.csv --json --out @/o",
    "compare": "novelty compare in/breast_cancer.csv --label diagnosis --positive malignant "
    "--json --out @/o",
    "diff": f"{SCREEN} in/mixed.csv --out @/a -q;{SCREEN} in/later.csv --out @/b --count 9 -q;"
    "novelty diff @/a @/b --json --out @/c",
    "large": f"{SCREEN} in/large.csv --json --out @/o --format parquet",
    "large-groups": f"{SCREEN} in/groups.csv --by group --count 50 --workers threads --out @/o",
    "refused-tables": f"{SCREEN} in/none.csv --out @/o;{SCREEN} in/few.csv --out @/o;"
    f"{SCREEN} in/titled.csv --out @/o;{SCREEN} in/mixed.csv --alpha 0.1 --out @/o;"
    f"{SCREEN} in/mixed.csv --by tree --out @/o;{SCREEN} in/mixed.csv --id none --out @/o;"
    "novelty score in/few.csv in/mixed.csv --out @/o;novelty diff in/parts in/parts --out @/o",
    "run-auto": f"{DENOISE} in/grey.png in/quiet.png --json --out @/o",
    "run-white": f"{DENOISE} in/grey.png in/colour.png --sigma 20 --quality fast "
    "--reference in/truth --compare --json --out @/o",
    "run-colour": f"{DENOISE} in/alpha.png --luma 0.8 --chroma 1.4 --strength 0.7 --format tiff "
    "--json --out @/o",
    "run-rbf": f"{DENOISE} in/grey.png --bandwidth 3 --quality fast --json --out @/o",
    "run-text": f"{DENOISE} in/text.png --content text --json --out @/o",
    "run-poisson": f"{DENOISE} in/poisson.png --noise poisson --json --out @/o",
    "run-speckle": f"{DENOISE} in/speckle.png --noise speckle --sigma 0.15 --json --out @/o",
    "run-impulse": f"{DENOISE} in/impulse.png --noise impulse --json --out @/o",
    "run-camera": f"{DENOISE} in/camera.jpg --json --out @/o",
    "run-camera-named": f"{DENOISE} in/camera.jpg --noise camera --format png --out @/o",
    "run-deep": f"{DENOISE} in/deep.tif in/twelve.tif --data-range 4095 --json --out @/o;"
    f"{DENOISE} in/deep.tif --quality high --json --out @/p",
    "run-stack": f"{DENOISE} in/film.tif --stack --data-range 1 --json --out @/o",
    "run-pages": f"{DENOISE} in/film.tif in/float.tif --quality fast --json --out @/o",
    "run-raw": f"{DENOISE} in/mosaic.dng --quality fast --json --out @/o",
    "run-same-noise": f"{DENOISE} in/same --same-noise --quality fast --json --out @/o",
    "run-per-image": f"{DENOISE} in/grey.png in/colour.png --per-image in/each.csv --quality fast "
    "--json --out @/o",
    "run-preview": f"{DENOISE} in/grey.png --preview --quality fast --out @/o",
    "run-dry-run": f"{DENOISE} in/same in/camera.jpg --dry-run --out @/o",
    "dictionary": "denoise fit in/truth/grey.png --patch-size 8 --max-examples 200 --sigma 20 "
    f"--model @/d.kpca --json;{DENOISE} in/grey.png --model @/d.kpca --json --out @/o",
    "noise": "denoise noise in/grey.png in/quiet.png in/colour.png in/poisson.png in/camera.jpg "
    "in/deep.tif in/float.tif in/film.tif in/mosaic.dng in/impulse.png in/speckle.png --json;"
    "denoise noise in/grey.png in/poisson.png in/text.png in/alpha.png in/twelve.tif",
    "refused-images": f"{DENOISE} in/none.png --out @/o;{DENOISE} in/few.csv --out @/o;"
    f"{DENOISE} in/grey.png --stack --out @/o;{DENOISE} in/grey.png --strength 2 --out @/o;"
    "denoise noise in/few.csv;denoise fit in/grey.png in/colour.png --model @/d.kpca",
}


def results_of(result: kpca.Screening) -> dict[str, Any]:
    """Return everything a screening reports about its rows."""
    frames = {
        "rows": result.to_frame(),
        "flagged": result.flagged(),
        "odd_cells": result.odd_cells_frame(),
        "reasons": result.reasons_frame(),
    }
    known = {
        "scores": result.rows.scores,
        "p_values": result.rows.p_values,
        "rarities": result.rows.rarities,
    }
    return {
        **{
            name: frame if isinstance(frame, pl.DataFrame) else text_of(frame)
            for name, frame in frames.items()
        },
        **{name: values for name, values in known.items() if values is not None},
        "ranks": result.rows.ranks,
        "repr": repr(result),
        "warnings": list(result.run.warnings),
    }


def text_of(frame: Any) -> str:
    """Write a frame of another library as CSV."""
    return str((frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()).to_csv())


def numbers(n: int = 200, columns: int = 6, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, columns)) @ rng.normal(size=(columns, columns))


def frames_of_polars() -> Mapping[str, Any]:
    return results_of(kpca.screen_table(typed(200, 11), label="known", positive="1", count=5))


def frames_of_pandas() -> Mapping[str, Any]:
    frame = pd.DataFrame(mixed(160, 12).to_dict(as_series=False)).set_index("tree")
    return results_of(kpca.screen_table(frame, share=0.05, hide="kind"))


def frames_of_arrow() -> Mapping[str, Any]:
    return results_of(kpca.screen_table(typed(200, 13).to_arrow(), by="site"))


def dict_and_array() -> Mapping[str, Any]:
    of_dict = kpca.screen_table({f"x{i}": x for i, x in enumerate(numbers().T)}, count=4)
    of_array = kpca.screen_table(numbers(), reference=numbers(seed=1), fdr=0.2)
    return {
        **{f"dict_{k}": v for k, v in results_of(of_dict).items()},
        **{f"array_{k}": v for k, v in results_of(of_array).items()},
    }


def models() -> Mapping[str, Any]:
    model = kpca.fit_model(mixed(200, 14, clean=True), alpha=0.05, label="known", seed=2)
    kpca.save_model(model, "models/m.kpca")
    again = kpca.load_model("models/m.kpca")
    return results_of(kpca.score_table(again, mixed(120, 15), accept="in/accept.csv"))


def in_parts(**options: Any) -> Callable[[], Mapping[str, Any]]:
    """Screen a small file in parts of 64 rows, as large files are screened."""

    def step() -> Mapping[str, Any]:
        table = kpca.open_table("in/mixed.csv", in_memory_rows=100, part_rows=64)
        return results_of(kpca.screen_table(table, jobs=2, **options))

    return step


def detector() -> Mapping[str, Any]:
    X, new = numbers(), numbers(80, seed=3) + 1
    given: dict[str, Any] = {}
    detectors: dict[str, dict[str, Any]] = {
        "default": {},
        "clean": {"contaminated": False},
        "split": {"contaminated": False, "calibration": "split"},
        "one": {"method": "hoffmann", "components": 12},
        "landmarks": {"n_landmarks": 50, "ridge": 0.01},
    }
    for name, options in detectors.items():
        fitted = kpca.KernelPCANovelty(random_state=0, **options).fit(X)
        given |= {
            f"{name}_fitted": fitted.novelty_scores_,
            f"{name}_new": fitted.score_samples(new),
        }
        given[f"{name}_flags"] = fitted.predict(new)
        if name == "clean":
            given["clean_p"] = fitted.p_values(new)
    return given


def engine() -> Mapping[str, Any]:
    X, new = numbers(), numbers(80, seed=3)
    given: dict[str, Any] = {}
    engines: dict[str, dict[str, Any]] = {
        "exact": {"method": "exact"},
        "linear": {"kernel": "linear", "method": "exact"},
        "ridge": {"method": "exact", "ridge": 0.01, "preimage": "ridge"},
        "poly": {"kernel": "poly", "degree": 2, "method": "exact", "center": False},
        "single": {"method": "exact", "precision": "float32"},
        "nystroem": {"method": "nystroem", "n_landmarks": 60},
        "kmeans": {"method": "nystroem", "n_landmarks": 60, "landmarks": "kmeans"},
    }
    for name, options in engines.items():
        try:
            fitted = kpca.KernelPCA(5, random_state=0, **options).fit(X)
            projected = np.abs(fitted.transform(new))  # the sign of a component is arbitrary
            given |= {name: projected, f"{name}_error": fitted.reconstruction_error(new)}
            if name in ("exact", "ridge", "nystroem"):
                given[f"{name}_back"] = fitted.inverse_transform(fitted.transform(new))
        except Exception as error:  # continue with the other kernels
            given[f"{name}_refused"] = f"{type(error).__name__}: {error}"
    return given


def images() -> Mapping[str, Any]:
    rng = np.random.default_rng(5)
    clean = picture("camera.png", 96)
    noisy = clean + 0.1 * rng.standard_normal(clean.shape)
    film = tifffile.imread("in/film.tif")
    plain, info = kpca.denoise_with_info(noisy, data_range=1.0)
    mosaic = seen_by_sensor(picture("astronaut.png", 96), rng)
    learned = kpca.DictionaryDenoiser(patch_size=6, sigma=0.1, max_examples=150).fit([clean])
    return {
        "plain": plain,
        "info": str(info),
        "with-level": kpca.denoise_kpca(noisy, sigma=0.1, quality="fast", noise="gaussian"),
        "stack": kpca.denoise_kpca(film, stack_axis=0, data_range=1.0, quality="fast"),
        "mosaic": kpca.denoise_mosaic(mosaic, black=256, white=4095, quality="fast"),
        "measured": str(kpca.measure_noise(noisy, data_range=1.0)),
        "dictionary": learned.denoise(noisy),
    }


PYTHON: dict[str, Callable[[], Mapping[str, Any]]] = {
    "python-polars": frames_of_polars,
    "python-pandas": frames_of_pandas,
    "python-arrow": frames_of_arrow,
    "python-dict-array": dict_and_array,
    "models": models,
    "parts-share": in_parts(share=0.04),
    "parts-by": in_parts(by="plot", count=7, hide="girth"),
    "parts-reference": in_parts(reference="in/clean.csv", fdr=0.2, label="known", positive="odd"),
    "parts-accept": in_parts(accept="in/accept.csv", method="hoffmann", n_landmarks=60),
    "detector": detector,
    "engine": engine,
    "images": images,
}
