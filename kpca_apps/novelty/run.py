"""Screen or score a table: the steps from a table to a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kpca_apps.errors import ConfigError
from kpca_apps.names import quoted
from kpca_apps.novelty.accepted import MOST, Accepted, Marks, find_reviewed
from kpca_apps.novelty.columns.lookup import resolve_columns
from kpca_apps.novelty.columns.parts import AnyTable, Execution, Sample, draw_sample, find_groups
from kpca_apps.novelty.columns.plan import UNKNOWN, ColumnOptions, ColumnSpec
from kpca_apps.novelty.findings.find_all import find_all
from kpca_apps.novelty.redact import redact, without_values
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.novelty.screening.encoded import Encoded, LearnedEncoder, encode
from kpca_apps.novelty.screening.fit import fit_planned, plan_fit, training_rows
from kpca_apps.novelty.screening.judge import judge
from kpca_apps.novelty.screening.model import RULES, NoveltyModel, ScreeningOptions
from kpca_apps.system.blas import one_blas_thread
from kpca_apps.tables.table import Table, extended, require_formats


def screen(
    table: AnyTable,
    *,
    reference: AnyTable | None = None,
    accept: Sequence[Table | Marks] = (),
    options: ScreeningOptions | None = None,
    execution: Execution | None = None,
) -> tuple[ScreeningResult, NoveltyModel]:
    """Screen a table for outliers; return the result and the fitted model.

    See `kpca_apps.screen_table`; `accept` holds accepted rows and marks.
    """
    options, execution = options or ScreeningOptions(), execution or Execution()
    columns = resolve_columns(options.columns, table, execution, reference=reference)
    options = replace(options, columns=columns)
    hidden, clean = columns.hide, reference is not None
    with without_values(hidden):
        sample = draw_sample(table, options.seed, execution)
        training = sample
        if reference is not None:
            training = draw_sample(reference, options.seed, execution)
        planned = plan_fit(training, options, clean)
        # Read accepted rows in the formats of the training table.
        specs = planned.plan.specs
        accepted = find_reviewed(accept, table, specs, execution, most=MOST, hidden=hidden)
        # Add accepted rows to the reference if they come from another table.
        if (
            reference is not None
            and accepted is not None
            and accepted.is_fine.any()
            and table.source.fingerprint != reference.source.fingerprint
        ):
            formats = {spec.name: spec.format for spec in planned.plan.used}
            require_formats(sample.table, formats, "the reference")
            both = extended(reference, table, accepted.is_fine)
            planned = plan_fit(draw_sample(both, options.seed, execution), options, clean)
        model, fitted = fit_planned(planned, execution, None if clean else accepted)
        scored = fitted
        if reference is not None:
            model = replace(model, options=_options_of_reference(options, table, reference))
            model, scored = rows_to_score(model, sample, options, execution, accepted)
        verdict = judge(model, scored, options)
        result = find_all(verdict, options, fitted)
    as_fitted = _with_encoders(model, lambda encoder: encoder.with_moved_dates({}))
    return redact(result, hidden), as_fitted


def _options_of_reference(
    options: ScreeningOptions, table: AnyTable, reference: AnyTable
) -> ScreeningOptions:
    """Return the options for a reference, without columns that the reference lacks."""
    extra, columns = {*table.columns} - {*reference.columns}, options.columns
    lists: dict[str, Any] = {
        name: tuple(column for column in getattr(columns, name) if column not in extra)
        for name in ("exclude", "categorical", "numeric", "hide")
    }
    label, id = (None if name in extra else name for name in (columns.label, columns.id))
    columns = replace(columns, label=label, id=id, **lists)
    return replace(options, columns=columns, positive=options.positive if label else None)


def hidden_of(model: NoveltyModel, options: ScreeningOptions) -> frozenset[str]:
    """Return the columns that a model or the options hide."""
    return model.encoder.plan.hidden.union(options.columns.hide)


def score(
    model: NoveltyModel,
    table: AnyTable,
    *,
    accept: Sequence[Table | Marks] = (),
    options: ScreeningOptions | None = None,
    execution: Execution | None = None,
) -> ScreeningResult:
    """Score and flag each row of a table by a fitted model, independently of other rows.

    `options` set rule, `explain`, label, id and hidden columns; by default they are the model's.
    """
    execution = execution or Execution()
    options = options or inherit_options(model, table, execution)
    hidden, specs = hidden_of(model, options), model.encoder.plan.specs
    if (label := options.columns.label) in {spec.name for spec in model.encoder.plan.used}:
        raise ConfigError(
            f"label {quoted(str(label))} is a column the model itself uses: it cannot judge the "
            "model; fit one with that column excluded"
        )
    with without_values(hidden), one_blas_thread():
        accepted = find_reviewed(accept, table, specs, execution, hidden=hidden)
        sample = draw_sample(table, model.options.seed, execution)
        model, rows = rows_to_score(model, sample, options, execution, accepted)
        verdict = judge(model, rows, options)
        return redact(find_all(verdict, options, None), hidden)


def inherit_options(
    model: NoveltyModel, table: AnyTable, execution: Execution | None = None, **changes: Any
) -> ScreeningOptions:
    """Return a model's options for another table, without a label or id that the table lacks.

    `changes` are fields of `ScreeningOptions`, or ``label``, ``id`` and ``hide``; ``None`` is
    ignored. A rule replaces the model's; `hide` adds to the model's hidden columns.
    """
    changed = {name: value for name, value in changes.items() if value is not None}
    base, columns, names = model.options, model.options.columns, table.columns
    label = changed.pop("label", columns.label if columns.label in names else None)
    id_column = changed.pop("id", columns.id if columns.id in names else None)
    # Check only these options: the table may lack columns that the model's other options name.
    of_rows = resolve_columns(
        ColumnOptions(label=label, id=id_column, hide=changed.pop("hide", ())),
        table,
        execution,
        also_hidden=sorted(hidden_of(model, base)),
    )
    if of_rows.label is None or of_rows.label != columns.label:
        base = replace(base, positive=None)
    if changed.keys() & set(RULES):
        changed = dict.fromkeys(RULES) | changed
    columns = replace(columns, label=of_rows.label, id=of_rows.id, hide=of_rows.hide)
    return replace(base, columns=columns, **changed)


def rows_to_score(
    model: NoveltyModel,
    sample: Sample,
    options: ScreeningOptions,
    execution: Execution,
    accepted: Accepted | None = None,
) -> tuple[NoveltyModel, Encoded]:
    """Encode the rows of a table to score (`sample.whole`), and adapt the model to the table.

    The returned model also hides the columns that `options` hide. If most dates of a column lie
    outside the training range, the model shifts them onto this range.
    """
    id, hide = options.columns.id, options.columns.hide
    specs = model.encoder.plan.specs

    def with_hidden(spec: ColumnSpec) -> ColumnSpec:
        return replace(spec, hidden=spec.hidden or spec.name in hide)

    names = {spec.name for spec in specs}
    # Columns unknown to the model are listed but not scored.
    unknown = [
        ColumnSpec(name, "id", "given as the identifier of rows")
        if name == id
        else ColumnSpec(name, "excluded", UNKNOWN)
        for name in dict.fromkeys([*hide, *filter(None, [id])])
        if name not in names
    ]

    def hiding(encoder: LearnedEncoder) -> LearnedEncoder:
        plan = replace(encoder.plan, specs=tuple(map(with_hidden, [*encoder.plan.specs, *unknown])))
        coders = tuple(replace(coder, spec=with_hidden(coder.spec)) for coder in encoder.coders)
        return replace(encoder, plan=plan, coders=coders)

    if hide or unknown:
        model = _with_encoders(model, hiding)
    if moved := model.encoder.moved_dates(sample.table):
        model = _with_encoders(model, lambda encoder: encoder.with_moved_dates(moved))
    training, table = None, sample.whole
    has_scores = table.source.n_rows == len(model.training_scores)
    if has_scores and table.source.fingerprint == model.source.fingerprint:
        training = training_rows(sample, model.options, model.clean).index
    rows = encode(
        model.encoder, sample, execution, n_jobs=options.jobs, accepted=accepted, training=training
    )
    found = find_groups(table, model.options.columns.by, execution)
    return model, replace(rows, groups=found)


def _with_encoders(
    model: NoveltyModel, changed: Callable[[LearnedEncoder], LearnedEncoder]
) -> NoveltyModel:
    """Change the encoders of the whole table and of each group."""
    groups = tuple(replace(group, encoder=changed(group.encoder)) for group in model.groups)
    return replace(model, encoder=changed(model.encoder), groups=groups)
