"""Findings of checkov in templates, and the acknowledgements that explain them."""

import json
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.paths import PROJECT

PYTHON = PROJECT / ".venv-checkov" / "bin" / "python"
_RUNNER = Path(__file__).parent / "run_checkov.py"


@dataclass(frozen=True, order=True)
class Finding:
    """A failed check of a resource, or an acknowledgement of one.

    Attributes:
        template: the mesh and the file.
        resource: the logical id.
        check: the id of the check.
        text: what the check demands, or the reason of the acknowledgement.
    """

    template: str
    resource: str
    check: str
    text: str = field(compare=False)

    def __str__(self) -> str:
        return f"{self.template}: {self.resource}: {self.check}: {self.text}"


def findings(templates: dict[str, dict[str, Any]], folder: Path) -> list[Finding]:
    """Return all findings of checkov in templates, those with an acknowledgement included.

    Args:
        templates: the templates by name.
        folder: an empty folder for copies of the templates.
    """
    files = {}
    for name, template in templates.items():
        path = folder / f"{name.replace('/', '-')}.template.json"
        path.write_text(json.dumps(_without_acknowledgements(template)))
        files[str(path)] = name
    result = subprocess.run(
        [PYTHON, "-I", _RUNNER, *files],
        capture_output=True,
        text=True,
        cwd=folder,
        env={},  # no variable of checkov, no credentials of its platform
        check=False,
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["unreadable"] == []
    return [
        Finding(files[each["template"]], each["resource"].rpartition(".")[2], each["check"], each["name"])
        for each in report["findings"]
    ]


def acknowledgements(templates: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """Yield the acknowledgements in the metadata of resources."""
    for name, template in templates.items():
        for logical_id, resource in template["Resources"].items():
            for skip in resource.get("Metadata", {}).get("checkov", {}).get("skip", []):
                yield Finding(name, logical_id, skip["id"], skip["comment"])


def unexplained(found: Iterable[Finding], of_resources: set[Finding], mesh_wide: Iterable[str]) -> list[Finding]:
    """Return the findings without an acknowledgement."""
    return sorted(each for each in found if each not in of_resources and each.check not in mesh_wide)


def stale(found: Iterable[Finding], of_resources: set[Finding], mesh_wide: Iterable[str]) -> list[str]:
    """Return the acknowledgements without a finding."""
    remaining = set(found)
    checks = {each.check for each in remaining - of_resources}
    return [str(each) for each in sorted(of_resources - remaining)] + sorted(set(mesh_wide) - checks)


def _without_acknowledgements(template: dict[str, Any]) -> dict[str, Any]:
    """Return a template without metadata: of a check that it skips, checkov does not say whether it would fail."""
    resources = {
        name: {key: value for key, value in resource.items() if key != "Metadata"}
        for name, resource in template["Resources"].items()
    }
    return {**template, "Resources": resources}
