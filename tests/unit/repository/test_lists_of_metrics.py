"""Manifests declare the metrics, the alarms and their thresholds, so no other module of the product lists them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from asya import registry
from tests.paths import PROJECT

METRICS = set(registry.PRODUCT.metrics)
ALARMS = {each.name for each in registry.PRODUCT.alarms}
THRESHOLDS = set(registry.PRODUCT.thresholds)
A_LIST = 3
"""So many of a kind in one collection, class or function of infra are a list of them."""


_NAME = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(METRICS | ALARMS | THRESHOLDS, key=len, reverse=True)))})\b")


def named(node: ast.AST) -> Iterator[str]:
    """Yield the texts of a collection, and the fields of a class."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from (each.value for each in node.elts if isinstance(each, ast.Constant) and isinstance(each.value, str))
    elif isinstance(node, ast.Dict):
        texts = [*node.keys, *node.values]
        yield from (each.value for each in texts if isinstance(each, ast.Constant) and isinstance(each.value, str))
    elif isinstance(node, ast.ClassDef):
        yield from (
            each.target.id
            for each in node.body
            if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
        )


def texts(tree: ast.Module) -> set[str]:
    """Return all texts of a module."""
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def lists(folder: Path) -> set[str]:
    """Return the modules with a list; manifests may have one, and functions write metrics one by one."""
    found = set()
    for part in ("functions", "infra", "asya_cli", "docs_site", "spark_jobs"):
        for path in (folder / part).rglob("*.py"):
            if path.name == "manifest.py":
                continue
            text = path.read_text(encoding="utf-8")
            if len(set(_NAME.findall(text))) < A_LIST:  # parsing takes longer
                continue
            tree = ast.parse(text)
            collections = [set(named(node)) for node in ast.walk(tree)]
            if part == "infra":
                collections.append(texts(tree))
            if any(len(each & kind) >= A_LIST for each in collections for kind in (METRICS, ALARMS, THRESHOLDS)):
                found.add(str(path.relative_to(folder)))
    return found


@pytest.mark.slow
def test_no_module_lists_metrics_alarms_or_thresholds_again() -> None:
    assert lists(PROJECT) == set()


def test_a_list_is_found(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "infra").mkdir()
    shown = tmp_path / "functions" / "shown.py"
    shown.write_text("SHOWN = ('Retried', 'SlaExpired', 'HopLimit')\n")
    keys = tmp_path / "functions" / "keys.py"
    keys.write_text("class Keys:\n    failures: int\n    throttles: int\n    redelivered: int\n")
    drawn = tmp_path / "infra" / "drawn.py"
    drawn.write_text("draw('Retried')\ndraw('SlaExpired')\ndraw('HopLimit')\n")
    assert lists(tmp_path) == {"functions/shown.py", "functions/keys.py", "infra/drawn.py"}
    for each in (shown, keys, drawn):
        each.write_text("TWO = ('Retried', 'SlaExpired')\n")
    assert lists(tmp_path) == set()
