"""``kpca novelty``: screen, fit, score, explain, compare, rules, diff."""

from __future__ import annotations

import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from kpca_apps.cli.commands import reproduce
from kpca_apps.cli.console import Console
from kpca_apps.cli.options import ROWS_FLAGGED, SOME_FAILED, command, group, whole_number
from kpca_apps.cli.results import REPORT_FILE, Clock, print_result, write_result
from kpca_apps.errors import ConfigError, UnlikeFilesError
from kpca_apps.names import safe_stem
from kpca_apps.options import NoveltyOptions, RuleFormat

RULES_BROKEN = SOME_FAILED

app = group("novelty", "Find the outliers of a table, with reasons.")

TableArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="TABLE...",
        help="CSV or other delimited text, Parquet, Arrow, JSON or Excel, compressed or not. "
        "Several files, a folder or a pattern ('data/*.csv') are read as one table; - is "
        "stdin. Also in a bucket: s3://bucket/data.csv, gs:// or az://. Or a database: "
        "postgresql://user@host/db, sqlite:///file.db or duckdb:///file.duckdb, with --table or "
        "--query.",
    ),
]
ModelArgument = Annotated[
    str, typer.Argument(metavar="MODEL", help="Model file that screen or fit wrote.")
]


@command(app)
def screen(
    context: typer.Context,
    table: TableArgument,
    options: NoveltyOptions,
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="Table of rows known to be normal.", metavar="FILE"),
    ] = None,
) -> int:
    """Rank the rows of a table, oddest first, with reasons.

    Without --reference the table itself may hold outliers, and you choose how many rows to flag
    (--share 0.01). With a reference the threshold has a false-alarm rate (--alpha 0.05).

    The result is a folder: report.html, the flagged rows, the scored table and the model. The model
    holds rows of the table: share it as you would share the data. --to-send adds a page without
    whole rows. For a table in a database, --write-to writes the scores to a new table there.
    """
    from kpca_apps.cli.novelty.run import (
        finish,
        open_folder,
        print_plan,
        refuse_shared_input,
        refuse_too_wide,
        running,
    )
    from kpca_apps.novelty.screening.model import ScreeningOptions, resolve_rule
    from kpca_apps.tables.opening import expand_each

    chosen = ScreeningOptions.of(options)
    resolve_rule(chosen, clean=reference is not None)
    if options.each:
        from kpca_apps.cli.novelty.each import screen_each

        return screen_each(context, table, options, chosen, reference)
    refuse_shared_input(reference, options.accept, *table)
    folder = open_folder(options, "novelty", table, reference)
    with running(options) as run:
        try:
            rows = run.read(table)
        except UnlikeFilesError as error:
            if len(expand_each(table)) > 1:
                error.args = (f"{error.args[0]} Or screen each by itself: --each.", *error.args[1:])
            raise
        refuse_too_wide(options, rows)
        clean = run.read_reference(reference)
        reviewed = run.read_reviewed()
        run.clock.lap("reading")
        if options.dry_run:
            print_plan(run, clean or rows, chosen)
            return 0
        from kpca_apps.novelty.run import screen as screen_rows

        with run.working("Screening", rows, clean):
            result, model = screen_rows(
                rows, reference=clean, accept=reviewed, options=chosen, execution=run.execution
            )
        run.clock.lap("screening")
        finish(run, context, folder, rows, result, model, save=True)
    return ROWS_FLAGGED if options.fail_on_flagged and result.n_flagged else 0


@command(
    app,
    without="accept marks positive explain out each to_send format keep_hidden flagged write_to "
    "junit fail_on_flagged",
)
def fit(
    reference: Annotated[
        list[str], typer.Argument(metavar="TABLE...", help="Table of rows known to be normal.")
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="FILE", help="File to write; it holds rows of the reference."
        ),
    ],
    options: NoveltyOptions,
) -> None:
    """Fit a model to rows known to be normal, and save it.

    The model file holds rows of the reference, from which reasons are computed: share it as you
    would share the data.
    """
    from kpca_apps.cli.novelty.run import print_plan, require_inputs, running
    from kpca_apps.novelty.screening.model import ScreeningOptions, resolve_rule
    from kpca_apps.system.files.model_files import check_model_path

    chosen = ScreeningOptions.of(options)
    resolve_rule(chosen, clean=True)
    require_inputs(*reference)
    if not options.dry_run:
        check_model_path(model, force=options.force)
    with running(options) as run:
        rows = run.read(reference)
        if options.dry_run:
            print_plan(run, rows, chosen)
            return
        from kpca_apps.cli.novelty.documents import FITTED_MODEL
        from kpca_apps.cli.novelty.lines import held, learned, say_warnings
        from kpca_apps.novelty.redact import visible_notes
        from kpca_apps.novelty.screening.fit import fit_table
        from kpca_apps.novelty.screening.model import save_model

        with run.working("Fitting", rows):
            fitted, _ = fit_table(rows, chosen, clean=True, execution=run.execution)
    save_model(fitted, model)
    console = run.console
    console.say(learned(fitted))
    say_warnings(console, visible_notes(fitted.warnings, fitted.options.columns.hide))
    console.say(f"The model {held(fitted)}")
    if options.json:
        console.data_json(FITTED_MODEL, {"model": model, "columns": fitted.encoder.plan.shown})
    else:
        console.data_path(model)


@command(
    app,
    without="by exclude categorical numeric dayfirst method sigma components ridge n_landmarks "
    " calibration learn_from seed each dry_run",
)
def score(
    context: typer.Context, model: ModelArgument, table: TableArgument, options: NoveltyOptions
) -> int:
    """Score the rows of a table with a saved model.

    Each row is judged independently of the others. Rows are flagged by the model's threshold unless
    another is given.
    """
    from kpca_apps.cli.novelty.run import adjusted, finish, open_folder, refuse_too_wide, running
    from kpca_apps.novelty.run import score as score_rows
    from kpca_apps.novelty.screening.model import load_model

    folder = open_folder(options, "novelty", table, model)
    with running(options) as run:
        loaded = load_model(model)
        rows = run.read(table, layout=loaded.options.layout)
        refuse_too_wide(options, rows)
        reviewed = run.read_reviewed()
        chosen = adjusted(run, loaded, rows)
        run.clock.lap("reading")
        with run.working("Scoring", rows):
            result = score_rows(
                loaded, rows, accept=reviewed, options=chosen, execution=run.execution
            )
        run.clock.lap("scoring")
        finish(run, context, folder, rows, result, loaded, save=False)
    return ROWS_FLAGGED if options.fail_on_flagged and result.n_flagged else 0


@command(
    app,
    only="accept marks id hide delimiter encoding sheet skip_rows bad_lines layout as_of query "
    "table_name timeout json quiet config",
)
def explain(
    model: ModelArgument,
    table: TableArgument,
    options: NoveltyOptions,
    row: Annotated[
        str | None,
        typer.Option(
            "--row", help="Row to explain: its id as in the report, or its number.", metavar="ID"
        ),
    ] = None,
    line: Annotated[
        int | None,
        typer.Option(
            "--line",
            help="Row to explain: the line of the file on which it starts.",
            metavar="N",
            parser=whole_number,
        ),
    ] = None,
) -> None:
    """Explain one row: what makes it odd, and what was expected."""
    from kpca_apps.cli.novelty.documents import EXPLAINED_ROW
    from kpca_apps.cli.novelty.lines import explanation_lines, place, say_warnings
    from kpca_apps.cli.novelty.run import adjusted, running
    from kpca_apps.novelty.explain import Line, explain_row
    from kpca_apps.novelty.screening.model import load_model

    if (row is None) == (line is None):
        is_value = row is None and options.id is not None
        instead = f"; --id names a column, --row {shlex.quote(options.id or '')} a row" * is_value
        raise ConfigError(f"give the row to explain by either --row or --line{instead}")
    sought = Line(line) if line is not None else str(row)
    with running(options) as run:
        loaded = load_model(model)
        rows = run.read(table, layout=loaded.options.layout)
        chosen, reviewed = adjusted(run, loaded, rows), run.read_reviewed()
        with run.working("Explaining", rows):
            found, result = explain_row(
                loaded, rows, sought, accept=reviewed, options=chosen, execution=run.execution
            )
    if options.json:
        run.console.data_json(EXPLAINED_ROW, asdict(found))
        return
    say_warnings(run.console, result.run.warnings)
    if result.rows.scale is not None:
        run.console.say(result.rows.scale.statement)
    run.console.data_lines([place(found, result), *explanation_lines(found)])


@command(
    app,
    without="share count alpha fdr accept marks by explain method sigma components calibration "
    "learn_from workers scheduler work_dir each to_send format keep_hidden flagged write_to junit "
    "fail_on_flagged",
)
def compare(
    context: typer.Context,
    table: TableArgument,
    label: Annotated[  # required for this command; also sets `options.label`
        str,
        typer.Option(
            "--label", help="Column of the known labels.", rich_help_panel="Columns", metavar="COL"
        ),
    ],
    options: NoveltyOptions,
) -> None:
    """Compare the detector with others on a table whose outliers are known.

    The others are Hoffmann's kernel PCA (that of screen --method hoffmann), linear PCA, a one-class
    SVM, Parzen density, an isolation forest and the local outlier factor. Each is fitted
    on all rows, and once more on a random half of the normal rows (Hoffmann 2007).
    """
    from kpca_apps.cli.novelty.run import open_folder, print_plan, running
    from kpca_apps.novelty.screening.model import ScreeningOptions

    chosen = ScreeningOptions.of(options)
    folder = open_folder(options, "comparison", table)
    with running(options) as run:
        rows = run.read(table)
        run.clock.lap("reading")
        if options.dry_run:
            print_plan(run, rows, chosen)
            return
        from kpca_apps.novelty.compare.comparison import compare_table
        from kpca_apps.novelty.redact import masked

        with run.console.stage("Comparing"):
            result = compare_table(rows, chosen, execution=run.execution)
        command = reproduce(context, masked(context.params, result), replacing=True)
        result = replace(result, run=replace(result.run, command=command))
    run.clock.lap("comparing")
    from kpca_apps.cli.novelty.lines import say_warnings
    from kpca_apps.report.novelty.figures import comparison_figures
    from kpca_apps.report.novelty.page import render_comparison
    from kpca_apps.report.novelty.text import verdict

    for number, evaluation in enumerate(result.evaluations, 1):
        for method in evaluation.methods:
            run.clock.seconds[f"setting {number}: {method.name}"] = round(method.seconds, 3)
    with folder as building:
        pages = [(REPORT_FILE, render_comparison(result))]
        write_result(building, result, pages, comparison_figures(result), run.clock)
    for evaluation in result.evaluations:
        run.console.say(evaluation.setting)
        run.console.say(verdict(evaluation))
    say_warnings(run.console, result.run.warnings)
    print_result(run.console, folder.path, result, options.json)


@command(
    app,
    only="id exclude categorical numeric hide dayfirst seed jobs force delimiter encoding sheet "
    "skip_rows bad_lines layout as_of query table_name timeout junit json quiet dry_run config",
)
def rules(
    table: TableArgument,
    options: NoveltyOptions,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            help="Check the table against the rules in this file, which --format json wrote.",
            metavar="FILE",
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", help="File to write instead of stdout.", metavar="FILE")
    ] = None,
    format: Annotated[
        RuleFormat | None,
        typer.Option(
            "--format",
            help="Format of the rules: text; json, to check other tables with --rules; sql, "
            "pandera or dqx. Default: by the ending of the file, else text.",
            metavar="KIND",
        ),
    ] = None,
) -> int:
    """Find rules between columns, or check a table against them.

    A rule holds in nearly all rows: start <= end, total = net + tax, one city for each ZIP. Each is
    printed with the rows that break it. A rule may hold without being intended: read it before
    you rely on it.

    With --rules, the exit code is 5 if a row breaks a rule.
    """
    from kpca_apps.cli.novelty.rules import Target, find, run_check
    from kpca_apps.cli.novelty.run import require_inputs

    require_inputs(*table, rules)
    target = Target.of(options, out, format, known=rules)
    if rules is None:
        find(table, options, target)
        return 0
    return RULES_BROKEN if run_check(rules, table, options, target) else 0


@command(app, only="out force json quiet config")
def diff(
    context: typer.Context,
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Folder of the earlier run.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder of the later run.")],
    options: NoveltyOptions,
) -> None:
    """Compare two runs of screen or score.

    Reports rows newly flagged and no longer flagged, matched by identifier or else by their cells;
    columns whose distribution shifted; settings that differ. The exit code is 0 whatever is found.
    """
    from kpca_apps.cli.novelty.lines import diff_lines, say_warnings
    from kpca_apps.cli.novelty.run import require_inputs
    from kpca_apps.novelty.compare.diff import diff_runs
    from kpca_apps.report.novelty.page import render_diff
    from kpca_apps.report.novelty.text import diff_headline
    from kpca_apps.system.files.output import OutputFolder

    folder = OutputFolder(
        options.out or f"kpca-diff-{safe_stem(new.absolute().name)}", force=options.force
    )
    require_inputs(old, new)
    folder.check()
    console, clock = Console(options.quiet), Clock()
    with console.stage("Comparing"):
        result = diff_runs(old, new, command=reproduce(context, replacing=True))
    clock.lap("comparing")
    with folder as building:
        write_result(building, result, [(REPORT_FILE, render_diff(result))], {}, clock)
    console.say(diff_headline(result))
    console.lines(diff_lines(result))
    say_warnings(console, result.run.warnings)
    print_result(console, folder.path, result, options.json)
