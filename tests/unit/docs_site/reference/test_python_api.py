"""Tests that the page has each public name."""

import importlib

import pytest

from docs_site.reference.python_api import packages, page, public_names

LINES = page().splitlines()


@pytest.mark.parametrize("package", list(packages()), ids=lambda package: package.module)
def test_each_public_name_has_a_directive_and_a_docstring(package) -> None:
    module = importlib.import_module(package.module)
    names = public_names(package)
    assert set(names) >= {name for name in getattr(module, "__all__", []) if not _is_module(getattr(module, name))}
    assert [name for name in names if f"::: {package.module}.{name}" not in LINES] == []
    assert [name for name in names if not getattr(module, name).__doc__] == []


def _is_module(value: object) -> bool:
    return type(value).__name__ == "module"
