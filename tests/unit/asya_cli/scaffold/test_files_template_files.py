"""The files of the templates are in the package, with the names of the author."""

import re
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
import yaml

from asya_cli.scaffold.files import piece_files, project_files
from asya_cli.scaffold.init import Template
from asya_cli.scaffold.naming import code_names
from tests.paths import PROJECT

PLACEHOLDER = re.compile(r"my-mesh|my[-_]actor|MyActor|0\.0\.0", re.IGNORECASE)
TESTED = version("asya-mesh")


@pytest.mark.parametrize("template", Template)
def test_a_project_has_all_that_it_needs(template: Template) -> None:
    files = project_files(template.value, "shop", TESTED)
    assert {".gitignore", ".github/workflows/mesh.yml", "mesh.yaml", "pyproject.toml", "README.md"} <= files.keys()
    assert any(name.startswith("samples/") for name in files)
    assert not [name for name, text in files.items() if PLACEHOLDER.search(name + text)]
    assert re.search(rf"^asya-mesh\[test.*\]=={re.escape(TESTED)}$", files["requirements-dev.txt"], re.MULTILINE)
    assert files["README.md"].startswith("# shop\n")
    assert len(files["README.md"].splitlines()) < 90


@pytest.mark.parametrize("template", Template)
def test_every_key_of_the_mesh_file_has_a_value(template: Template) -> None:
    """A comma in a text without quotes would begin a key."""

    def values(node: Any) -> Iterator[Any]:
        if isinstance(node, dict | list):
            for each in node.values() if isinstance(node, dict) else node:
                yield from values(each)
        else:
            yield node

    assert None not in list(values(yaml.safe_load(project_files(template.value, "shop", TESTED)["mesh.yaml"])))


def test_the_pieces_have_the_names_of_the_author() -> None:
    for piece in ("actor", "spark_actor", "tool", "tool_of_route"):
        files = piece_files(piece, "check-orders", code_names("check-orders"))
        assert files
        assert not [name for name, text in files.items() if PLACEHOLDER.search(name + text)]


def test_the_workflow_deploys_as_the_documentation_says() -> None:
    workflow = yaml.safe_load(project_files("light", "shop", TESTED)[".github/workflows/mesh.yml"])
    page = (PROJECT / "docs" / "how-to" / "deploy-from-github.md").read_text()
    [text] = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    documented = yaml.safe_load(text)["jobs"]["deploy"]
    deploy = workflow["jobs"]["deploy"]
    assert deploy["permissions"] == {"contents": "read", "id-token": "write"}
    assert workflow["permissions"] == {"contents": "read"}  # the tests of a pull request get no token
    uses = {step["uses"] for job in workflow["jobs"].values() for step in job["steps"] if "uses" in step}
    assert uses == {step["uses"] for step in documented["steps"] if "uses" in step}
    assert [step["run"].split()[1] for step in deploy["steps"] if "run" in step][2:] == ["doctor", "deploy", "smoke"]
    assert "refs/heads/main" in deploy["if"]
