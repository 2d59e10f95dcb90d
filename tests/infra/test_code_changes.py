"""A change of code alone deploys the functions and the job code that have it, and nothing else."""

import json
from pathlib import Path
from typing import Any

from tests.infra.conftest import synthesize
from tests.infra.sized_mesh import write_sized_mesh


def resources(folder: Path) -> dict[tuple[str, str], Any]:
    """Return all resources of the templates in a folder, by stack and logical id."""
    return {
        (file.name, name): resource
        for file in folder.glob("*.template.json")
        for name, resource in json.loads(file.read_text())["Resources"].items()
    }


def changed_functions(before: dict[tuple[str, str], Any], after: dict[tuple[str, str], Any]) -> set[str]:
    """Return the names of the changed functions; fail if another resource has changed."""
    assert before.keys() == after.keys()
    changes = [after[key] for key in before if before[key] != after[key]]
    assert {change["Type"] for change in changes} == {"AWS::Lambda::Function"}
    return {change["Properties"]["FunctionName"].removeprefix("asya-sized-6-") for change in changes}


def test_code_reaches_only_the_functions_that_run_it(tmp_path: Path, no_aws_environment: None) -> None:
    mesh = write_sized_mesh(tmp_path, 6)

    def synthesized(name: str) -> dict[tuple[str, str], Any]:
        synthesize(tmp_path / name, mesh=str(mesh))
        return resources(tmp_path / name)

    base = synthesized("base")
    (tmp_path / "handlers" / "work.py").write_text("def keep(payload):\n    return {**payload, 'seen': True}\n")
    with_handler = synthesized("handler")
    (tmp_path / "jobs" / "heavy.py").write_text("def one(spark, payload):\n    return {**payload, 'seen': True}\n")
    with_job = synthesized("job")

    assert changed_functions(base, with_handler) == {f"actor-with-a-long-name-{n:03}" for n in (1, 2, 3, 4)}
    # They name the job code in the requests of runs. The runs that they have started keep theirs.
    assert changed_functions(with_handler, with_job) == {"x-dispatch", "x-completion", "x-reconcile"}
