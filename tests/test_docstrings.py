"""Public names are documented as numpydoc asks: every parameter, and what is returned."""

import inspect
from collections.abc import Iterator

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import kpca_apps

# Results, which functions make and whose fields are attributes; errors; and what runs the work.
OTHERS = {
    "DenoiseInfo", "RuleCheck", "Rules", "Screening", "Execution", "Workers", "__version__",
}  # fmt: skip
# No summary, parameters missing, unknown or out of order, nothing on what is returned.
ASKED = {"GL08", "SS01", "SS03", "PR01", "PR02", "PR03", "PR10", "RT01"}


def names() -> Iterator[str]:
    """Yield public functions and classes, and the methods of these."""
    for name in sorted({*kpca_apps.__all__} - OTHERS):
        found = getattr(kpca_apps, name)
        yield name
        if inspect.isclass(found) and not issubclass(found, Exception):
            for method, value in vars(found).items():
                if inspect.isfunction(value) and not method.startswith("_"):
                    yield f"{name}.{method}"


@pytest.mark.parametrize("name", [*names()])
def test_documented(name: str) -> None:
    errors = validate(f"kpca_apps.{name}")["errors"]
    assert [message for code, message in errors if code in ASKED] == []


@pytest.mark.parametrize("name", [name for name in kpca_apps.__all__ if name[0].isupper()])
def test_attributes_are_described(name: str) -> None:
    described = NumpyDocString(inspect.getdoc(getattr(kpca_apps, name)) or "")["Attributes"]
    assert [one.name for one in described if not "".join(one.desc).strip()] == []
