"""Write rules as test cases in JUnit XML, a format that continuous integration systems read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from kpca_apps.cli.novelty.lines import breaking_rows
from kpca_apps.errors import OptionError
from kpca_apps.novelty.relations.rule_file import TEST_CASES, TITLE, check_target
from kpca_apps.novelty.result import ScreeningResult
from kpca_apps.options import NoveltyOptions
from kpca_apps.system.files.output import atomic_write

# Characters that XML 1.0 forbids: https://www.w3.org/TR/xml/#charsets
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class RuleCase:
    """A rule as a test case."""

    name: str
    n_rows: int  # number of rows to which the rule applies; with 0, the case is skipped
    n_broken: int
    rows: str = ""  # the first rows that break the rule, as text


def check_junit(options: NoveltyOptions, out: str | Path | None) -> None:
    """Raise an error if the JUnit file cannot be written or is inside the folder of results."""
    if options.junit is None or options.dry_run:
        return
    is_taken = False
    with suppress(OSError, ValueError):  # an invalid path is refused below
        is_taken = out is not None and Path(options.junit).resolve().is_relative_to(
            Path(out).resolve()
        )
    if is_taken:
        raise OptionError("junit", "is where other results are written; choose another place")
    check_target(options.junit, force=options.force, holds=TEST_CASES, option="--junit")


def screening_cases(result: ScreeningResult) -> list[RuleCase]:
    """Return the rules of a screened table as test cases."""
    return [
        RuleCase(one.rule, one.n_rows, one.n_broken, breaking_rows(one, len(one.rows)))
        for one in result.findings.rules
    ]


def write_junit(path: str, table: str, cases: Iterable[RuleCase]) -> None:
    """Write test cases as one suite, named after the table."""
    cases = list(cases)
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.n_broken > 0 for case in cases)),
        "errors": "0",
        "skipped": str(sum(case.n_rows == 0 for case in cases)),
    }
    root = ElementTree.Element("testsuites", {"name": f"{TITLE} {_xml(table)}", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _xml(table), **counts})
    for case in cases:
        names = {"classname": _xml(table), "name": _xml(case.name)}
        found = ElementTree.SubElement(suite, "testcase", names)
        if case.n_broken:
            message = f"broken in {case.n_broken:,} of {case.n_rows:,} rows"
            failure = ElementTree.SubElement(found, "failure", {"message": message, "type": "rule"})
            failure.text = _xml(case.rows)
        elif not case.n_rows:
            ElementTree.SubElement(found, "skipped", {"message": "it says nothing of any row"})
    ElementTree.indent(root)
    with atomic_write(path) as file:
        file.write(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _xml(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
