from __future__ import annotations

from kpca_apps.files.tables.opening import table_from_frame
from kpca_apps.files.tables.table import Table
from kpca_apps.novelty.screening.model import NoveltyModel, fit_model
from kpca_apps.novelty.screening.options import ScreeningOptions
from kpca_apps.novelty.screening.scoring import Judged, inherit_options, judge
from kpca_apps.novelty.screening.screening import scored_rows
from kpca_apps.novelty.table.columns import ColumnOptions
from tests.novelty.tables import correlated, frame_of

OPTIONS = ScreeningOptions(
    alpha=0.1, columns=ColumnOptions(label="kind", id="name"), positive="odd", seed=4
)


def judged_by(model: NoveltyModel, table: Table, options: ScreeningOptions) -> Judged:
    return judge(model, scored_rows(model, table, options), options)


def test_a_model_passes_its_options_on_as_far_as_the_table_has_the_columns() -> None:
    model = fit_model(correlated(60, odd=5), OPTIONS)
    assert inherit_options(model, correlated(10)) == OPTIONS
    bare = inherit_options(model, table_from_frame(frame_of(10).drop("kind", "name")))
    assert (bare.columns.label, bare.columns.id, bare.positive) == (None, None, None)
    assert (bare.alpha, bare.seed) == (0.1, 4)


def test_what_is_told_anew_replaces_what_is_inherited() -> None:
    model = fit_model(correlated(60, odd=5), OPTIONS)
    told = inherit_options(model, correlated(10), fdr=0.2, id="colour", hide=("bill",), share=None)
    assert (told.alpha, told.fdr, told.share) == (None, 0.2, None)
    assert (told.columns.id, told.columns.label, told.columns.hide) == ("colour", "kind", ("bill",))


def test_a_threshold_chosen_on_one_table_is_kept_for_the_next() -> None:
    model = fit_model(correlated(100, odd=3), ScreeningOptions(share=0.05), clean=False)
    for n in (5, 50):
        new = correlated(n, seed=9)
        judged = judged_by(model, new, inherit_options(model, new))
        assert judged.threshold.value == model.detector.threshold_
        assert (judged.flagged == (judged.scores > judged.threshold.value)).all()
    new = correlated(50, seed=9)
    chosen = judged_by(model, new, inherit_options(model, new, count=4))
    assert chosen.flagged.sum() == 4
    assert not chosen.known


def test_warnings_of_the_reference_are_told_from_those_of_the_table() -> None:
    gaps = frame_of(60).with_columns(bill=None)
    gaps = gaps.with_columns(frame_of(60)["bill"].scatter([3], [float("nan")]).alias("bill"))
    model = fit_model(table_from_frame(gaps, "clean.csv"), OPTIONS)
    judged = judged_by(model, correlated(20, seed=1), OPTIONS)
    assert any(text.startswith("In clean.csv, the reference: ") for text in judged.warnings)
