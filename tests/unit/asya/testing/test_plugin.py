"""The fixtures of the test kit, in a project of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from asya.testing.plugin import code_folders
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.sections import keys_of

TESTS = """
import orders
import pytest
from asya import data
from asya.testing import EndpointRefusedError, Mesh
from asya.testing import isolation

def test_a_mesh(asya_mesh: Mesh, asya_data):
    assert asya_mesh.send("price", {"total": 2}).result["price"] == 4
    assert (asya_data / "prices" / "last.txt").read_text() == "2"

def test_an_endpoint_is_allowed():
    isolation.check_call("GET", "https://bedrock-runtime.eu-west-1.amazonaws.com/")
    with pytest.raises(EndpointRefusedError):
        isolation.check_call("GET", "https://sqs.eu-west-1.amazonaws.com/")

def test_a_handler(asya_data):
    assert orders.price({"total": 1})["price"] == 2
    assert data.size("prices/last.txt") == 1
"""


@pytest.mark.slow
def test_pytest_finds_the_fixtures(shop: Path) -> None:
    (shop.parent / "test_shop.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", "."]
    command += ["-o", "asya_allowed_endpoints=bedrock-runtime.*.amazonaws.com"]
    result = subprocess.run(command, cwd=shop.parent, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert "3 passed" in result.stdout


def test_the_code_folders_have_the_defaults_of_the_mesh_file(tmp_path: Path) -> None:
    mesh_file = tmp_path / "mesh.yaml"
    mesh_file.write_text("namespace: shop\n")
    defaults = keys_of(MeshFile)
    assert code_folders(mesh_file) == tuple(
        (tmp_path / str(defaults[key].default)).resolve() for key in ("code", "jobs")
    )


def test_the_code_folders_have_the_written_names(tmp_path: Path) -> None:
    mesh_file = tmp_path / "mesh.yaml"
    mesh_file.write_text("namespace: shop\ncode: 3.10\njobs: no\n")
    assert code_folders(mesh_file) == ((tmp_path / "3.10").resolve(), (tmp_path / "no").resolve())


def test_another_python_than_that_of_functions_is_named() -> None:
    from asya.testing.plugin import other_python

    assert other_python("3.13.1") == []
    (line,) = other_python("3.11.7")
    assert "Python 3.11.7" in line
    assert "functions have Python 3.13" in line
