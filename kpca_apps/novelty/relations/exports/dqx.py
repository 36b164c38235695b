"""Rules as checks for dqx of Databricks Labs: YAML that `DQEngine` applies to Spark frames.

Each check is a ``sql_expression`` in Spark's SQL that is true where a row breaks the rule. Spark
has no order of rows and no times of day; comments name the rules left out for that reason. Texts
are quoted so that JSON and YAML read them alike, and no name can end its quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kpca_apps.names import one_line
from kpca_apps.novelty.relations.exports.cells import Dialect, why_left_out
from kpca_apps.novelty.relations.exports.conditions import broken
from kpca_apps.novelty.relations.exports.sql import code_pattern, sql_language
from kpca_apps.novelty.relations.rule import AnyRule, HeldRules, RuleColumn, Sorted
from kpca_apps.novelty.relations.sentences import phrase, sentence

_LINE = 1_000  # maximum number of characters in a comment
_HEAD = """\
# Rules between the columns of {table}, for dqx of Databricks Labs (checks: a list of dicts).
"""
_CHECK = """\
# {}
- name: {}
  criticality: warn
  check:
    function: sql_expression
    arguments:
      expression: {}
      negate: true
      msg: {}
"""


def _spark_literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _replaced(text: str, pattern: str, by: str) -> str:
    groups = re.sub(r"\\\\([0-9])", r"$\1", by)  # Java writes the group \1 as $1
    return f"REGEXP_REPLACE({text}, {pattern}, {groups})"


SPARK = Dialect(
    name=lambda name: "`" + name.replace("`", "``") + "`",
    literal=_spark_literal,
    text="STRING",
    replaced=_replaced,
    seconds=lambda date: f"CAST(CAST({date} AS TIMESTAMP) AS DOUBLE)",  # DOUBLE needs a TIMESTAMP
    has_form=lambda text, form: f"{text} RLIKE " + _spark_literal(rf"\A{code_pattern(form)}\z"),
)


def rules_as_dqx(rules: HeldRules) -> str:
    """Write the checks of rules as YAML, each below a comment with the rule's sentence."""
    parts = [_HEAD.format(table=one_line(rules.table))]
    for held in rules.rules:
        comment = one_line(sentence(held, rules.by_name), _LINE)
        if why := _why_left_out(held.rule, rules.by_name):
            parts.append(f"# {comment}: left out, {why}\n")
        else:
            expression = broken(held.rule, sql_language(rules.by_name, SPARK))
            name = one_line(phrase(held.rule, rules.by_name), _LINE)
            texts = map(_quoted, (name, expression, f"breaks: {name}"))
            parts.append(_CHECK.format(comment, *texts))
    text = "".join(parts)
    return text if "\n- " in text else f"{text}[]\n"


def _why_left_out(rule: AnyRule, columns: Mapping[str, RuleColumn]) -> str:
    if isinstance(rule, Sorted):
        return "as the rows of Spark have no order"
    numbers = [columns[name].numbers for name in rule.columns]
    if any(format is not None and format.clock for format in numbers):
        return "as Spark has no times of day"
    return why_left_out(rule, columns)


def _quoted(text: str) -> str:
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(sign: str) -> str:
    if sign in '"\\':
        return f"\\{sign}"
    return sign if sign.isprintable() else f"\\U{ord(sign):08x}"
