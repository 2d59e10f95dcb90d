"""Tests that mypy reads every CDK module in use; the types of a skipped module silently become `Any`."""

import ast
import tomllib
from collections.abc import Iterator

import pytest

from tests.paths import PROJECT


def read_modules() -> set[str]:
    """The CDK modules that mypy reads."""
    overrides = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    return {module for each in overrides if each.get("follow_imports") == "normal" for module in each["module"]}


def used_modules() -> Iterator[str]:
    """Yields the CDK modules that the source imports."""
    for path in [PROJECT / "app.py", *(PROJECT / "infra").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name.startswith("aws_cdk."))
            elif isinstance(node, ast.ImportFrom) and node.module == "aws_cdk":
                yield from (f"aws_cdk.{alias.name}" for alias in node.names if alias.name.startswith("aws_"))
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("aws_cdk."):
                yield str(node.module)


@pytest.mark.slow
def test_mypy_reads_every_cdk_module_in_use() -> None:
    used = set(used_modules())
    assert "aws_cdk.aws_lambda" in used
    assert used <= read_modules()
