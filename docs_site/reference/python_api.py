"""The page of the Python API: a directive for each public name, from which mkdocstrings writes the docstring."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docs_site.reference.source import ROOT

INTRODUCTION = """\
# Python API

Every public name of the packages that handlers, jobs, tests and programs import, with its docstring.
"""


@dataclass(frozen=True)
class Package:
    """A module that users import, and what for."""

    module: str
    folder: str
    purpose: str

    @property
    def path(self) -> Path:
        """The file of the module."""
        stem = ROOT / self.folder / self.module.replace(".", "/")
        return stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")


_PACKAGES = (
    Package("asya", "functions", "For handlers of light actors."),
    Package("asya.data", "functions", "The data of a mesh, for handlers."),
    Package("asya.client", "functions", "Start and follow tasks from a program."),
    Package("asya.testing", "functions", "The test kit."),
    Package("asya_spark", "spark_jobs", "For job functions of heavy actors."),
    Package("asya_spark.data", "spark_jobs", "The data of a mesh, for job functions."),
    Package("asya_spark.tables", "spark_jobs", "Append to tables once, whatever runs again."),
)


def packages() -> Iterator[Package]:
    """Yield the packages that this version has."""
    yield from (package for package in _PACKAGES if package.path.is_file())


def public_names(package: Package) -> list[str]:
    """Return the names in `__all__`; without it, the functions and classes of the module without an underscore.

    A name that is a module of its own is left out.
    """
    tree = ast.parse(package.path.read_text(encoding="utf-8"))
    names = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = [str(name) for name in ast.literal_eval(node.value)]
    modules = {each.module for each in _PACKAGES}
    return [name for name in names if f"{package.module}.{name}" not in modules]


def page() -> str:
    """Write the page."""
    lines = [INTRODUCTION]
    for package in packages():
        lines += [f"## {package.module}", "", package.purpose, ""]
        lines += [line for name in public_names(package) for line in (f"::: {package.module}.{name}", "")]
    return "\n".join(lines)
