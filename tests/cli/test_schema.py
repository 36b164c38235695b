"""``kpca schema`` prints the schema of every kind of JSON, which the files of runs follow."""

import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from kpca_apps.cli.schema import schemas
from tests.cli.conftest import Run, assert_refused


def errors(kind: str, content: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(schemas()[kind]).iter_errors(content)]


def test_every_kind_is_listed_and_printed(run_kpca: Run) -> None:
    done = run_kpca("schema")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()] == [*schemas()]
    for kind, schema in schemas().items():
        Draft202012Validator.check_schema(schema)
        assert schema["description"].endswith(".")
        assert json.loads(run_kpca("schema", kind).out) == schema
    assert_refused(run_kpca("schema", "novelty"), 2, "there is no JSON schema")
    assert_refused(run_kpca("schema", "novelty-screen"), 2, 'Did you mean "novelty-screening"?')


def test_a_result_names_the_schema_it_follows(kpca: Run) -> None:
    assert kpca("screen", "birds.csv").code == 0
    result = json.loads(Path("kpca-novelty-birds/result.json").read_text("utf-8"))
    *_, kind, version = result["$schema"].split(":")
    assert (schemas()[kind]["$id"], str(result["schema_version"])) == (result["$schema"], version)
    run = json.loads(Path("kpca-novelty-birds/run.json").read_text("utf-8"))
    assert errors("run", run) == []
    assert errors("run", run | {"started": 1}) == ["1 is not of type 'string'"]


def test_a_file_of_rules_follows_its_schema(folder: Path, kpca: Run) -> None:
    rows = "".join(f"{i * i % 97},{i * i % 97 + i % 3},{i % 5}\n" for i in range(200))
    Path("low.csv").write_text(f"low,high,code\n{rows}", encoding="utf-8")
    assert kpca("rules", "low.csv", "--out", "rules.json").code == 0
    rules = json.loads(Path("rules.json").read_text("utf-8"))
    assert rules["rules"]
    assert errors("rules", rules) == []
    assert errors("rules", {key: value for key, value in rules.items() if key != "columns"})
    assert errors("rules", rules | {"format_version": 2})
    rules["rules"][0]["rule"]["kind"] = "another"
    assert errors("rules", rules)
