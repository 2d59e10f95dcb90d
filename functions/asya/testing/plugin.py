"""The fixtures of the test kit; pytest finds this plugin by itself.

The setting `asya_mesh` in the configuration of pytest names the mesh file; by default it is `mesh.yaml`. The setting
`asya_allowed_endpoints` names the endpoints of AWS that tests may call, one on each line; by default there are none. Tests
import the handlers and jobs of the mesh's code folders as the mesh does.
"""

import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from asya.testing import isolation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from asya.testing import Mesh
    from asya_local.state_folder import LocalConnection


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings."""
    parser.addini("asya_allowed_endpoints", "Endpoints of AWS that tests may call.", type="linelist", default=[])
    parser.addini("asya_mesh", "The mesh file of the fixture asya_mesh.", default="mesh.yaml")


def pytest_configure(config: pytest.Config) -> None:
    """Put what is deployed of the code folders of the mesh file on the path, and allow endpoints."""
    isolation.configure(config.getini("asya_allowed_endpoints"))
    mesh_file = _mesh_file(config)
    if not mesh_file.is_file():
        return
    from asya.testing import code_views
    from asya_infra.build.code_files import CodeFilesError

    code_views.test_files[1:] = [str(pattern) for pattern in config.getini("python_files")]
    for folder in code_folders(mesh_file):
        if folder.is_dir():
            try:
                view = str(code_views.view_of(folder))
            except CodeFilesError:
                continue  # the fixture tells what is wrong
            if view not in sys.path:
                sys.path.append(view)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name the Python of tests if functions have another one, and the files of the code folders that are not deployed."""
    from asya_infra.build.code_files import code_files, described

    mesh_file = _mesh_file(config)
    if not mesh_file.is_file():
        return []
    folders = code_folders(mesh_file)
    return [
        *other_python(platform.python_version()),
        *(line for folder in folders for line in described(code_files(folder))),
    ]


def other_python(version: str) -> list[str]:
    """Return the line that says that functions have another Python than this version of tests; none if they have not."""
    from asya_infra.product.interpreters import FUNCTION_PYTHON

    if version.startswith(f"{FUNCTION_PYTHON}."):
        return []
    return [
        f"asya: tests run handlers on Python {version}, and functions have Python {FUNCTION_PYTHON}; "
        f"`asya validate` imports them with {FUNCTION_PYTHON}"
    ]


def code_folders(mesh_file: Path) -> tuple[Path, ...]:
    """The folders with the handlers and the jobs of a mesh file."""
    import yaml

    try:
        # Every scalar is text, as it is to the mesh: a folder may be called 3.10.
        content = yaml.load(mesh_file.read_bytes(), Loader=yaml.BaseLoader)
    except yaml.YAMLError:
        return ()  # the fixture tells what is wrong, with the line
    named = content if isinstance(content, dict) else {}
    # The defaults are those of `asya_infra.mesh_file.mesh_model`, which takes longer to import than a test may run.
    return tuple(
        (mesh_file.parent / str(named.get(key, default))).resolve()
        for key, default in (("code", "functions/handlers"), ("jobs", "spark_jobs"))
    )


@pytest.fixture
def asya_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for data, which `asya.data` and jobs use through `ASYA_DATA_URI`."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("ASYA_DATA_URI", f"file://{folder}/")
    return folder


@pytest.fixture
def asya_mesh(request: pytest.FixtureRequest, asya_data: Path) -> "Mesh":
    """The mesh of the mesh file, new for each test, with the data of `asya_data`."""
    from asya.testing import Mesh

    return Mesh(_mesh_file(request.config), data=asya_data)


@pytest.fixture(scope="session")
def asya_spark_session() -> "SparkSession":
    """A local Spark session, warm for all tests of this process, whose workers import what the tests import."""
    from asya.testing.services.functions import REGION
    from asya.testing.spark_session import share_path, spark_session
    from asya.testing.user_code import variables

    session = spark_session()
    with variables(isolation.variables(REGION)):
        share_path(session)
    return session


@pytest.fixture(scope="session")
def asya_local_cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[LocalConnection]":
    """The mesh on a local cloud, as `asya local up` deploys it, with IAM enforced; it takes half a minute.

    Its addresses and keys are those of `local.json`.
    """
    from asya_local.cloud import down, up

    state = tmp_path_factory.mktemp("asya-cloud")
    try:
        yield up(_mesh_file(request.config), state)
    finally:
        down(state)


def _mesh_file(config: pytest.Config) -> Path:
    return config.rootpath / str(config.getini("asya_mesh"))
