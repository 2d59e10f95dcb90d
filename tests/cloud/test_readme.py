"""Every command of the README, run as it stands there; those that would reach AWS as far as that goes without it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asya_local.keys import read_keys
from tests.cloud.readme import commands, write_files
from tests.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cloud.deployed_cloud import DeployedCloud

pytestmark = pytest.mark.cloud

# What runs the set-up, the demo and the tests themselves is followed to the command it comes to; the demo's own tests
# are in test_demo.py.
WHOLE_TARGETS = {
    "make demo": ".venv/bin/asya demo",
    "make demo APPROVE=1": ".venv/bin/asya demo --approve",
    "make demo KEEP=1": ".venv/bin/asya demo --keep",
    "make test": ".venv/bin/pytest --numprocesses 3",
}


class Shell:
    """A reader's shell, in a folder with the files that the README shows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = write_files(folder)
        (folder / "events").symlink_to(PROJECT / "events")
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }

    def run(self, command: str, **environment: str) -> str:
        """Run one command; what it said on standard output."""
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def make(self, arguments: str, *more: str) -> str:
        """Run make on the project's Makefile, from the reader's folder: paths mean the same as there."""
        words = [
            f"MESH={self.folder / word.removeprefix('MESH=')}" if word.startswith("MESH=") else word
            for word in shlex.split(arguments)
        ]
        return self.run(shlex.join(["make", "--no-print-directory", "-C", str(PROJECT), *more, *words]))


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    reader = Shell(tmp_path)
    yield reader
    for state in (tmp_path / ".asya").glob("*"):
        if not state.is_symlink():
            reader.run(f"asya local down --state {state}")


def about(word: str) -> list[str]:
    """The local commands of the README that name a state folder, or anything else."""
    return [command for command in commands("sh") if word in command]


def test_no_command_is_forgotten_here() -> None:
    kinds = [*WHOLE_TARGETS, *about(".asya/demo"), *about(".asya/shop"), *about("make synth")]
    assert sorted(kinds) == sorted(commands("sh"))


def test_the_targets_come_to_what_the_readme_says(shell: Shell) -> None:
    for command, comes_to in WHOLE_TARGETS.items():
        said = shell.make(command.removeprefix("make "), "--dry-run")
        assert comes_to in [line.rstrip() for line in said.splitlines()]


def test_looking_around_in_the_demos_cloud(shell: Shell, cloud: DeployedCloud, tmp_path: Path) -> None:
    cloud.put_dataset(tmp_path / "data", 1, "")
    (shell.folder / ".asya").mkdir()
    (shell.folder / ".asya" / "demo").symlink_to(cloud.state)
    *looks, down = about(".asya/demo")
    said = [shell.run(command) for command in looks]
    assert said[0].strip() == "again"
    assert "succeeded" in said[1]
    assert json.loads((shell.folder / "again.json").read_bytes())["id"] == "again"
    shell.run(f"{down} --help")  # the other tests go on with this cloud; the shop's is taken down by the same command


def test_a_mesh_of_ones_own(shell: Shell) -> None:
    assert {path.name for path in shell.files} == {"mesh.yaml", "orders.py", "sales.py", "orders.json"}
    said = {command: shell.run(command) for command in about(".asya/shop")}
    [result] = [json.loads(text) for command, text in said.items() if command.startswith("asya result")]
    assert (result["count"], result["sales"]) == (3, {"NO": 20.0, "SE": 30.0})
    [down] = [text for command, text in said.items() if command.startswith("asya local down")]
    assert "processes ended" in down


def test_the_templates_of_that_mesh(shell: Shell) -> None:
    [synth] = about("make synth")
    shell.make(synth.removeprefix("make "))
    assert (PROJECT / "cdk.out" / "Asya-shop-test-state.template.json").exists()


def test_deploying_is_synthesising_and_one_word_more(shell: Shell) -> None:
    for command in (command for command in commands("sh aws") if command.startswith("make")):
        arguments = command.removeprefix("make ")
        deploy = shell.make(arguments, "--dry-run").splitlines()[-1]
        synth = shell.make(arguments.replace("deploy", "synth"), "--dry-run").splitlines()[-1]
        assert deploy.split() == synth.replace("synth --quiet", "deploy --all").split()


def test_talking_to_a_mesh_on_aws(shell: Shell, cloud: DeployedCloud, tmp_path: Path) -> None:
    """The commands find the mesh by its stacks and use the caller's own credentials; here these lead to the local cloud."""
    cloud.put_dataset(tmp_path / "data", 1, "")
    deployer = read_keys(cloud.state / "keys.json")["deployer"]
    environment = {"AWS_ENDPOINT_URL": cloud.mesh.connection.endpoint_url or "", **deployer.environment()}
    said = [shell.run(command, **environment) for command in commands("sh aws") if command.startswith("asya")]
    assert json.loads(said[-1])["status"]["phase"] == "succeeded"
