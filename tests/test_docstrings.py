"""Public names have numpydoc docstrings: parameters, returns, and examples that run."""

import inspect
from collections.abc import Iterator
from dataclasses import fields
from operator import attrgetter

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import kpca_apps

# Result classes, whose fields are documented as attributes.
RESULTS = {"DenoiseInfo", "RuleCheck", "Rules", "Screening"}
# Numpydoc errors: missing summary, wrong or missing parameters, missing Returns section.
REQUIRED = {"GL08", "SS01", "SS03", "PR01", "PR02", "PR03", "PR10", "RT01"}
# Also required for the engine: descriptions of parameters and return values.
REQUIRED_OF_ENGINE = REQUIRED | {"PR07", "RT03"}
# Functions that need a file of an earlier run; the how-to guides have their examples.
WITHOUT_EXAMPLE = {"load_model", "save_model", "run_batch"}
LONGEST_SUMMARY = 90


def names() -> Iterator[str]:
    """Yield the names of public functions and classes, and of the classes' methods."""
    for name in sorted({*kpca_apps.__all__} - {"__version__"}):
        member = getattr(kpca_apps, name)
        yield name
        if inspect.isclass(member) and not issubclass(member, Exception):
            for method, value in vars(member).items():
                is_field = method in inspect.get_annotations(member)
                if inspect.isfunction(value) and not (is_field or method.startswith("_")):
                    yield f"{name}.{method}"


@pytest.mark.parametrize("name", [*names()])
def test_documented(name: str) -> None:
    required = REQUIRED_OF_ENGINE if name.startswith("KernelPCA.") else REQUIRED
    required = required - {"PR01"} if name in RESULTS else required
    errors = validate(f"kpca_apps.{name}")["errors"]
    assert [message for code, message in errors if code in required] == []


@pytest.mark.parametrize("name", sorted({*names()} - WITHOUT_EXAMPLE))
def test_summary_is_short_and_functions_have_an_example(name: str) -> None:
    text = inspect.getdoc(attrgetter(name)(kpca_apps)) or ""
    assert 0 < len(text.partition("\n")[0]) <= LONGEST_SUMMARY
    is_method, is_error = "." in name, name.endswith(("Error", "Warning"))
    assert ">>>" in text or is_method or is_error


@pytest.mark.parametrize("name", [name for name in kpca_apps.__all__ if name[0].isupper()])
def test_attributes_are_described(name: str) -> None:
    public = getattr(kpca_apps, name)
    described = NumpyDocString(inspect.getdoc(public) or "")["Attributes"]
    assert [field.name for field in described if not "".join(field.desc).strip()] == []
    # `ScreeningResult` documents the fields that `Screening` inherits.
    if name in RESULTS - {"Screening"}:
        names = {name for field in described for name in field.name.split(", ")}
        assert {field.name for field in fields(public) if field.name[0] != "_"} == names
