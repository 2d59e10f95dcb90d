"""The packages of a function and of job runs: their files, and that they are never those of other requirements."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from asya.protocol.mesh_table import Actor, MeshTable, encode_table
from asya_infra.build.functions import build_handlers
from asya_infra.build.jobs import build_job_packages
from asya_infra.build.packages import LAMBDA, PackagesError, Target, build_folder_packages
from asya_infra.contracts.read import Function, read_types

TABLE = encode_table(MeshTable(namespace="shop", actors={"score": Actor(kind="handler", handler="mine.handle")}))
HERE = Target(interpreter=Path(sys.executable))


def written(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def code(tmp_path: Path, requirements: str) -> Path:
    written(tmp_path / "code" / "mine.py", "def handle(payload): return payload\n")
    return written(tmp_path / "code" / "requirements.txt", requirements).parent


def wheel(folder: Path, files: dict[str, str]) -> Path:
    """A wheel of the package `lib`; the same files give the same bytes."""
    files = {
        **files,
        "lib-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: lib\nVersion: 1\n",
        "lib-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "lib-1.dist-info/entry_points.txt": "[console_scripts]\nlib-command = lib:main\n",
    }
    path = folder / "lib-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name), text)
        archive.writestr(
            "lib-1.dist-info/RECORD", "".join(f"{name},,\n" for name in [*files, "lib-1.dist-info/RECORD"])
        )
    return path


def project(folder: Path, **modules: str) -> Path:
    """The sources of a package `lib`."""
    written(
        folder / "pyproject.toml",
        '[project]\nname = "lib"\nversion = "1"\n[build-system]\nrequires = ["setuptools"]\n'
        'build-backend = "setuptools.build_meta"\n[tool.setuptools]\npackages = ["lib"]\n',
    )
    for name, text in {"__init__": "", **modules}.items():
        written(folder / "lib" / f"{name}.py", text)
    return folder


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


IMPORTABLE = (
    *(
        "lib/__init__.py",
        "lib/tests/__init__.py",
        "lib/tests/helpers.py",
        "lib/testing/tests/data.csv",
        "lib/bin/__init__.py",
    ),
    *(
        "lib/test/x.py",
        "lib/RECORD",
        "lib/INSTALLER",
        "lib/__init__.pyi",
        "lib/.hidden",
        "lib/bin/run.py",
        "lib/core.so.1",
    ),
    *("tests/__init__.py", "docs/conf.py", "lib.libs/liblib.so", "lib/direct_url.json", "examples/tests/x.ipynb"),
)


def test_nothing_that_code_may_import_or_read_is_left_out(tmp_path: Path) -> None:
    wheel(tmp_path, dict.fromkeys(IMPORTABLE, "#!/usr/bin/env python\n") | {"lib/__pycache__/x.cpython-313.pyc": "x"})
    folder = build_handlers(tmp_path / "build", LAMBDA, code(tmp_path, "../lib-1-py3-none-any.whl\n"), TABLE)
    metadata = {f"lib-1.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "INSTALLER", "REQUESTED")}
    own = {"mine.py", "requirements.txt", "mesh.json"}
    assert names(folder) - own == {*IMPORTABLE, *metadata, "lib-1.dist-info/entry_points.txt"}


def listed(folder: Path) -> set[str]:
    """What `importlib.metadata` says that the package `lib` consists of, with the version of this process."""
    program = (
        f"import sys, json; sys.path.insert(0, {str(folder)!r})\n"
        "from importlib.metadata import distribution\n"
        "each = distribution('lib')\n"
        "print(json.dumps([str(file) for file in each.files]))"
    )
    result = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def test_a_package_lists_its_files_and_no_other(tmp_path: Path) -> None:
    wheel(tmp_path, dict.fromkeys(IMPORTABLE, ""))
    folder = build_folder_packages(tmp_path / "build", code(tmp_path, "../lib-1-py3-none-any.whl\n"), HERE)
    assert folder is not None
    assert listed(folder) == names(folder)


def test_scripts_of_this_machine_are_left_out_and_programs_stay(tmp_path: Path) -> None:
    """A script names the interpreter that installed it, so two machines would deploy two contents."""
    scripts = {
        "lib-script": "#!python\nprint(1)\n",
        "lib-shell": "#!/bin/sh\necho 1\n",
        "lib-program": "\x7fELF python",
    }
    files = {"lib/__init__.py": "def main(): pass\n", "bin/module.py": "X = 1\n"}
    wheel(tmp_path, files | {f"lib-1.data/scripts/{name}": text for name, text in scripts.items()})
    folder = build_folder_packages(tmp_path / "build", code(tmp_path, "../lib-1-py3-none-any.whl\n"), HERE)
    assert folder is not None
    assert {path.name for path in (folder / "bin").iterdir()} == {"lib-shell", "lib-program", "module.py"}
    assert listed(folder) == names(folder)


def test_the_path_of_a_local_wheel_is_in_no_package(tmp_path: Path) -> None:
    """Its content is the same on every machine."""
    contents = []
    for place in ("one", "two"):
        user = code(tmp_path / place, "../lib-1-py3-none-any.whl\n")
        wheel(user.parent, {"lib/__init__.py": ""})
        folder = build_folder_packages(tmp_path / place / "build", user, HERE)
        assert folder is not None
        contents.append({name: (folder / name).read_bytes() for name in names(folder)})
    assert contents[0] == contents[1]


def of_function(tmp_path: Path) -> Path:
    return build_handlers(tmp_path / "build", LAMBDA, tmp_path / "code", TABLE)


def of_folder(tmp_path: Path) -> Path:
    folder = build_folder_packages(tmp_path / "build", tmp_path / "code", HERE)
    assert folder is not None
    return folder


@pytest.mark.parametrize(
    ("requirement", "build"),
    [("../shared/lib", of_function), ("-e ../shared/lib", of_folder), ("lib @ ../shared/lib", of_folder)],
)
def test_a_project_beside_the_mesh_is_a_package_as_its_sources_are_now(
    tmp_path: Path, requirement: str, build: Callable[[Path], Path]
) -> None:
    code(tmp_path, f"{requirement}\n")
    project(tmp_path / "shared" / "lib", first="X = 1\n", second="X = 2\n")
    assert {"lib/__init__.py", "lib/first.py"} <= names(build(tmp_path))
    project(tmp_path / "shared" / "lib", second="X = 3\n")
    (tmp_path / "shared" / "lib" / "lib" / "first.py").unlink()
    after = build(tmp_path)
    assert {name for name in names(after) if name.startswith("lib/")} == {"lib/__init__.py", "lib/second.py"}
    assert not [name for name in names(after) if name.endswith(".pth")]
    assert (after / "lib" / "second.py").read_text() == "X = 3\n"


def test_a_project_whose_name_only_its_build_knows_is_named(tmp_path: Path) -> None:
    written(tmp_path / "lib" / "setup.py", "import setuptools; setuptools.setup(name='lib')\n")
    with pytest.raises(
        PackagesError, match=r"requirements\.txt: the name .* require it by its name too: NAME @ \.\./lib"
    ):
        build_handlers(tmp_path / "build", LAMBDA, code(tmp_path, "../lib\n"), TABLE)


def test_other_requirements_are_other_packages_everywhere(tmp_path: Path) -> None:
    """A file beside the mesh, which the requirements include, decides for functions, local modes, job runs and types."""
    shared = written(tmp_path / "shared" / "req.txt", "six==1.16.0\n")
    folder = code(tmp_path, "-r ../shared/req.txt\n")
    written(folder / "mine.py", "import six\ndef handle(payload: getattr(six, 'Missing', int)): return payload\n")

    def made() -> list[object]:
        jobs = build_job_packages(tmp_path / "build", HERE, folder)
        assert jobs is not None
        types = read_types(tmp_path / "build", folder, [Function("score", "mine.handle")], [], {})
        return [of_function(tmp_path), of_folder(tmp_path), jobs.digest, types.functions["score"].input]

    before = made()
    wheel(tmp_path / "shared", {"six.py": "Missing = str\n"})
    written(shared, "lib @ ../shared/lib-1-py3-none-any.whl\n")
    after = made()
    assert all(first != second for first, second in zip(before, after, strict=True))
    assert before[-1] == {"type": "integer"}
    assert after[-1] == {"type": "string"}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_requirements_in_the_encodings_of_windows(tmp_path: Path, encoding: str) -> None:
    folder = code(tmp_path, "")
    (folder / "requirements.txt").write_bytes("# ours\r\nsix\r\n".encode(encoding))
    assert "six.py" in names(of_function(tmp_path))
    (folder / "requirements.txt").write_bytes("# none yet\r\n".encode(encoding))
    assert build_folder_packages(tmp_path / "build", folder, HERE) is None
