"""Tests the tutorial: its files are valid at each step, and its envelopes end as the text says."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from asya_infra.mesh_file import LoadedMesh, MeshFileError, load_mesh
from tests.cloud import readme
from tests.paths import PROJECT

TUTORIAL = (PROJECT / "docs" / "tutorial" / "first-mesh.md").read_text()
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"# (\S+\.(?:yaml|py))\n")
SEND = re.compile(r"asya send (\S+) --actor (\S+)(?: --next (\S+))? --id (\S+)")


@dataclass
class Reader:
    """Follows the tutorial in a folder, without running Spark jobs.

    Attributes:
        runs: whether `asya dev`, which follows each saved file, or a local cloud runs.
    """

    folder: Path
    mesh: LoadedMesh | None = None
    handler: str = ""
    runs: bool = False
    outcomes: list[tuple[str, Any]] = field(default_factory=list)

    def read(self) -> None:
        for language, name, text in BLOCK.findall(TUTORIAL):
            if file := name or file_name(text):
                path = self.folder / file
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
                if self.runs:
                    self.load()
            elif language == "sh":
                for line in text.splitlines():
                    self.run(line)

    def run(self, line: str) -> None:
        if line in ("asya dev", "asya local up"):
            self.runs = True
            self.load()
        if command := SEND.match(line):
            file, actor, next_actor, envelope_id = command.groups()
            assert self.mesh is not None
            assert {actor, next_actor} - {None} <= self.mesh.mesh.actors.keys()
            self.outcomes.append((envelope_id, self.check_orders((self.folder / file).read_text())))
        if "asya replay" in line:
            self.outcomes.append(("replay", self.check_orders((self.folder / "february.json").read_text())))

    def load(self) -> None:
        self.mesh = load_mesh(self.folder / "mesh.yaml")
        self.handler = (self.folder / "handlers" / "orders.py").read_text()

    def check_orders(self, payload: str) -> Any:
        code: dict[str, Any] = {}
        exec(compile(self.handler, "orders.py", "exec"), code)
        try:
            return code["check_orders"](json.loads(payload))
        except ValueError as error:
            return f"ValueError: {error}"


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    reader = Reader(tmp_path)
    reader.read()
    return reader


def test_the_first_envelopes_succeed_and_the_third_one_fails_until_the_fix(reader: Reader) -> None:
    outcomes = dict(reader.outcomes)
    assert list(outcomes) == ["january-1", "january-2", "february", "replay", "january-3"]
    assert outcomes["january-1"]["count"] == outcomes["january-2"]["count"] == 3
    assert outcomes["february"] == "ValueError: there are no orders"
    assert [order["country"] for order in outcomes["replay"]["orders"]] == ["DK", "DK"]


def test_the_mesh_and_its_job_equal_those_of_the_readme(reader: Reader) -> None:
    """The cloud tests run the README's files, so they cover the tutorial's too."""
    files = {file_name(block.text): block.text for block in readme.blocks()}
    for path in ("mesh.yaml", "jobs/sales.py"):
        assert body((reader.folder / path).read_text()) == body(files[f"shop/{path}"])


def test_the_tutorial_shows_the_actual_error_of_a_mistyped_key(reader: Reader) -> None:
    path = reader.folder / "mesh.yaml"
    path.write_text(path.read_text().replace("handler:", "handlr:"))
    with pytest.raises(MeshFileError) as caught:
        load_mesh(path)
    [line] = re.findall(r"^mesh\.yaml:.*$", TUTORIAL, re.MULTILINE)
    assert line in str(caught.value)


def file_name(text: str) -> str:
    """The file name in the first line of a block; empty without one."""
    match = NAME.match(text)
    return match[1] if match else ""


def body(text: str) -> str:
    """A file without its first line, the comment with the file name."""
    return text.split("\n", 1)[1]
