"""Rules as checks of databrickslabs' dqx: a list in YAML that `DQEngine` applies to Spark frames.

What looks at one row is a ``sql_expression`` in Spark's SQL, true where the row breaks the rule.
Spark's rows have no order, and it has no times of day: rules of these are left out, and that is
said. Texts are quoted as JSON and YAML both read them, so that no name can end one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpca_apps.names import one_line
from kpca_apps.novelty.relations.exports.sql import Dialect, SqlWriter, code_pattern
from kpca_apps.novelty.relations.rule import AnyRule, Determines, HeldRule, Sorted, Unique
from kpca_apps.novelty.relations.rules import HeldRules, RuleColumn
from kpca_apps.novelty.relations.sentences import phrase, sentence

_LINE = 1_000  # characters of a comment
_HEAD = """\
# Rules between the columns of {table}, for dqx of Databricks Labs (checks: a list of dicts).
"""


def _spark_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _spark_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _has_form(text: str, form: str) -> str:
    whole = rf"\A{code_pattern(form)}\z"
    return f"{text} RLIKE {_spark_literal(whole)}"


SPARK = Dialect(
    name=_spark_name,
    literal=_spark_literal,
    double="DOUBLE",
    text="STRING",
    moment=lambda cell: f"CAST({cell} AS TIMESTAMP)",  # a date has no seconds
    seconds=lambda moment: f"CAST({moment} AS DOUBLE)",
    has_form=_has_form,
)


def rules_as_dqx(rules: HeldRules) -> str:
    """Write a check for each rule as YAML, under its sentence."""
    parts = [_HEAD.format(table=one_line(rules.table))]
    for held in rules.rules:
        said = one_line(sentence(held, rules.by_name), _LINE)
        if why := _why_left_out(held.rule, rules.by_name):
            parts.append(f"# {said}: left out, {why}\n")
        else:
            parts.append(f"# {said}\n- {_yaml(_check(held, rules.by_name), 1)}")
    return "".join(parts) if len(parts) > 1 else f"{parts[0]}[]\n"


def _why_left_out(rule: AnyRule, columns: Mapping[str, RuleColumn]) -> str:
    if isinstance(rule, Sorted):
        return "as the rows of Spark have no order"
    numbers = [columns[name].numbers for name in rule.columns]
    if any(format is not None and format.clock for format in numbers):
        return "as Spark has no times of day"
    return ""


def _check(held: HeldRule, columns: Mapping[str, RuleColumn]) -> dict[str, Any]:
    said = one_line(phrase(held.rule, columns), _LINE)
    arguments = {
        "expression": _broken(held.rule, SqlWriter(columns, SPARK)),
        "negate": True,
        "msg": f"breaks: {said}",
    }
    call = {"function": "sql_expression", "arguments": arguments}
    return {"name": said, "criticality": "warn", "check": call}


def _broken(rule: AnyRule, writer: SqlWriter) -> str:
    """Write when a row breaks a rule; rows are compared by windows over those alike."""
    if not isinstance(rule, Unique | Determines):
        return writer.broken(rule)
    cells = [*map(writer.key, rule.columns)]
    known, of_row = " AND ".join(map(writer.has_key, rule.columns)), ", ".join(cells)
    if isinstance(rule, Unique):
        return f"{known} AND COUNT(*) OVER (PARTITION BY {of_row}) > 1"
    n_alike = f"COUNT(*) OVER (PARTITION BY {of_row})"
    has_value = f"CASE WHEN {writer.has_key(rule.columns[-1])} THEN 1 END"
    n_of_key = f"COUNT({has_value}) OVER (PARTITION BY {', '.join(cells[:-1])})"
    return f"{known} AND 2 * {n_alike} <= {n_of_key}"


def _yaml(value: Any, depth: int) -> str:
    """Write dicts, lists, texts and Booleans as YAML, dicts and lists a line an entry."""
    indent = "  " * depth
    if isinstance(value, dict):
        entries = [f"{key}:{_entry(of, depth + 1)}" for key, of in value.items()]
        return f"\n{indent}".join(entries) + ("\n" if depth == 1 else "")
    if isinstance(value, list):
        return f"\n{indent}".join(f"- {_yaml(of, depth)}" for of in value)
    return ("false", "true")[value] if isinstance(value, bool) else _quoted(value)


def _entry(value: Any, depth: int) -> str:
    gap = f"\n{'  ' * depth}" if isinstance(value, dict | list) else " "
    return f"{gap}{_yaml(value, depth)}"


def _quoted(text: str) -> str:
    """Write a text in double quotes; what cannot be seen is escaped."""
    parts = []
    for sign in text:
        if sign in '"\\':
            parts.append(f"\\{sign}")
        elif sign.isprintable():
            parts.append(sign)
        else:
            parts.append(f"\\U{ord(sign):08x}")
    return f'"{"".join(parts)}"'
