"""The deployed folders: their contents, target and reproducibility."""

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from asya import registry
from asya.heavy.job_python import AWS_CLIENT
from asya.protocol.mesh_table import Actor, MeshTable, encode_table
from asya_infra.build import folder as folder_module
from asya_infra.build import functions
from asya_infra.build.folder import build_once, digest, source_files
from asya_infra.build.functions import build_dispatcher, build_gateway, build_handlers, build_layer, build_table
from asya_infra.build.jobs import Archive, JobFiles, build_jobs
from asya_infra.build.packages import LAMBDA, PackagesError, Target, install
from tests.paths import PROJECT

HERE = Path(__file__).parent
CLOUD_PYTHON = PROJECT / ".venv-cloud" / "bin" / "python"
TABLE = encode_table(MeshTable(namespace="shop", actors={"score": Actor(kind="handler", handler="orders.score")}))
LAMBDA_PACKAGES = {"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"}
AARCH64, X86_64 = 183, 62
SPARK = Target(python_version="3.12", python_platform="aarch64-manylinux_2_28")


@pytest.fixture(scope="session")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_layer(tmp_path_factory.mktemp("layer"), LAMBDA)


@pytest.fixture(scope="session")
def host_layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_layer(tmp_path_factory.mktemp("host-layer"), Target(interpreter=CLOUD_PYTHON))


def machine_of(library: Path) -> int:
    header = library.read_bytes()[:20]
    assert header[:4] == b"\x7fELF"
    return int.from_bytes(header[18:20], "little")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_layer_holds_the_library_and_its_packages(layer: Path) -> None:
    assert {"asya", "msgspec", "aws_lambda_powertools", "jmespath"} <= {p.name for p in (layer / "python").iterdir()}
    assert not (layer / "python" / "boto3").exists()
    assert not [name for name in ("client", "testing") if (layer / "python" / "asya" / name).exists()]
    names = contents(layer)
    assert not any("__pycache__" in name or name.endswith(".pyc") for name in names)
    assert sum(map(len, names.values())) <= 25 * 1024 * 1024


def test_compiled_code_in_the_layer_is_for_lambdas_processor_and_python(layer: Path) -> None:
    libraries = list(layer.rglob("*.so"))
    assert libraries
    assert {machine_of(library) for library in libraries} == {AARCH64}
    assert all("313" in library.name or "abi3" in library.name for library in libraries)


IMPORT_ENTRY_POINT = f"""
import importlib, sys, sysconfig
layer, module, function = sys.argv[1:]
sys.path.insert(0, f"{{layer}}/python")
assert callable(getattr(importlib.import_module(module), function))
assert sys.modules["asya"].__file__.startswith(layer)
files = {{name.partition(".")[0]: getattr(loaded, "__file__", None) or "" for name, loaded in sys.modules.items()}}
own = {{name for name, file in files.items() if file.startswith(sysconfig.get_path("purelib"))}}
assert own <= {LAMBDA_PACKAGES!r}, own
"""


def entry_points() -> list[tuple[str, str]]:
    """Module and attribute of every entry point that a manifest declares."""
    own = registry.PRODUCT
    declared = (*own.functions.values(), *own.steps.values(), *own.actor_functions.values())
    return sorted({(module, name) for module, _, name in (each.entry_point.rpartition(".") for each in declared)})


def test_every_slice_has_its_entry_points() -> None:
    slices = {module.partition(".lambdas.")[0] for module, _ in entry_points()}
    capabilities = {f"asya.capabilities.{name}" for name in ("fan_in", "pauses", "dead_letters", "triggers")}
    assert slices >= {"asya.light", "asya.heavy", "asya.ends", "asya.gateway", *capabilities}


@pytest.mark.parametrize(("module", "function"), entry_points())
def test_entry_points_import_with_the_layer_and_boto3_alone(host_layer: Path, module: str, function: str) -> None:
    """The cloud's interpreter has none of the layer's packages. Of its own, functions may load those that Lambda has too."""
    command = [str(CLOUD_PYTHON), "-I", "-c", IMPORT_ENTRY_POINT, str(host_layer), module, function]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_same_input_gives_the_same_bytes(layer: Path, tmp_path: Path) -> None:
    again = build_layer(tmp_path, LAMBDA)
    assert again.name == layer.name
    assert contents(again) == contents(layer)


def test_the_layer_is_small_enough_for_the_users_own_packages(layer: Path) -> None:
    """Lambda limits all layers and the function to 250 MB together, and loads them in a cold start."""
    assert sum(path.stat().st_size for path in layer.rglob("*") if path.is_file()) < 25 * 1024 * 1024


def test_a_second_build_reuses_the_first(tmp_path: Path) -> None:
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "x").write_text("x")

    first = build_once(tmp_path, "thing", ["a"], make)
    assert build_once(tmp_path, "thing", ["a"], make) == first
    second = build_once(tmp_path, "thing", ["b"], make)
    assert second != first
    assert len(made) == 2
    assert {path.name for path in tmp_path.iterdir()} == {first.name, second.name}


def test_other_code_that_builds_makes_other_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that another version of this product has built does not stand in for one of this version."""
    source = "def make(folder): (folder / 'x').write_text({text!r})\n"
    folders = []
    for text in ("one", "two"):
        module = tmp_path / "module.py"
        module.write_text(source.format(text=text))
        values: dict[str, Callable[[Path], None]] = {}
        exec(compile(module.read_text(), module, "exec"), values)
        folders.append(build_once(tmp_path / "build", "thing", ["a"], values["make"]))
    monkeypatch.setattr(folder_module, "_own_code", lambda: b"another version")
    folders.append(build_once(tmp_path / "build", "thing", ["a"], values["make"]))
    assert len(set(folders)) == 3
    assert [(folder / "x").read_text() for folder in folders] == ["one", "two", "two"]


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        build_once(tmp_path, "thing", ["a"], make)
    assert list(tmp_path.iterdir()) == []


def test_names_and_contents_have_different_hashes() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])


def test_the_code_of_handlers_has_the_table(tmp_path: Path) -> None:
    folder = build_handlers(tmp_path, LAMBDA, HERE / "mesh" / "handlers", TABLE)
    assert contents(folder).keys() == {"orders.py", "mesh.json"}
    assert (folder / "mesh.json").read_bytes() == TABLE
    assert contents(build_table(tmp_path, TABLE)) == {"mesh.json": TABLE}


def test_requirements_of_handlers_are_installed_for_lambda(tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "mine.py").write_text("def handle(payload): return payload\n")
    (code / "requirements.txt").write_text("msgspec\n")
    folder = build_handlers(tmp_path / "build", LAMBDA, code, TABLE)
    assert {machine_of(library) for library in folder.rglob("*.so")} == {AARCH64}


PINNED = re.search(
    r"^jmespath==.*\\\n(?:    --hash=.*\n)+", (PROJECT / "requirements" / "layer.txt").read_text(), re.MULTILINE
)


def packed(files: JobFiles) -> dict[str, bytes]:
    """The files in the archive of packages."""
    assert files.packages is not None
    return unpacked(files.packages)


def unpacked(packed: Archive) -> dict[str, bytes]:
    """The files in an archive."""
    with tarfile.open(packed.archive) as archive:
        files_of = {member.name: archive.extractfile(member) for member in archive.getmembers()}
        return {name: file.read() for name, file in files_of.items() if file is not None}


def user_folder(folder: Path, requirements: str) -> Path:
    folder.mkdir()
    (folder / "mine.py").write_text("def handle(payload): return payload\n")
    (folder / "requirements.txt").write_text(requirements)
    return folder


def test_required_hashes_accept_packages_that_are_pinned_with_them(tmp_path: Path) -> None:
    assert PINNED is not None
    code = user_folder(tmp_path / "code", PINNED[0])
    assert (build_handlers(tmp_path / "build", LAMBDA, code, TABLE, hashed=True) / "jmespath").is_dir()
    assert "jmespath/__init__.py" in packed(build_jobs(tmp_path / "build", SPARK, code, hashed=True))


@pytest.mark.parametrize("is_forged", [False, True])
def test_required_hashes_refuse_all_other_packages(tmp_path: Path, is_forged: bool) -> None:
    assert PINNED is not None
    forged = re.sub(r"sha256:\w+", "sha256:" + "0" * 64, PINNED[0])
    code = user_folder(tmp_path / "code", forged if is_forged else "jmespath==1.0.1\n")
    if not is_forged:
        # What was installed without hashes does not take the place of a build with them.
        build_handlers(tmp_path / "build", LAMBDA, code, TABLE)
        build_jobs(tmp_path / "build", SPARK, code)
    advice = r"(?s)requirements\.txt: cannot be installed.*[Hh]ash.*requirements_hashes: required.*--generate-hashes"
    with pytest.raises(PackagesError, match=advice):
        build_handlers(tmp_path / "build", LAMBDA, code, TABLE, hashed=True)
    with pytest.raises(PackagesError, match=advice):
        build_jobs(tmp_path / "build", SPARK, code, hashed=True)


def test_unavailable_packages_are_named(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("msgspec==0.0.0\n")
    with pytest.raises(PackagesError, match=r"requirements\.txt: cannot be installed for Python 3\.13 on aarch64"):
        install(tmp_path / "requirements.txt", tmp_path / "out", LAMBDA)


def test_the_dispatcher_brings_a_boto3_that_knows_execution_policies(tmp_path: Path) -> None:
    folder = build_dispatcher(tmp_path, Target(interpreter=CLOUD_PYTHON), TABLE)
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); import boto3; assert boto3.__file__.startswith({str(folder)!r})\n"
        "session = boto3.Session(region_name='us-east-1', aws_access_key_id='a', aws_secret_access_key='b')\n"
        "for service in ('dynamodb', 's3', 'sqs', 'sts'): session.client(service)\n"
        "client = session.client('emr-serverless')\n"
        "assert 'executionIamPolicy' in client.meta.service_model.operation_model('StartJobRun').input_shape.members"
    )
    result = subprocess.run([str(CLOUD_PYTHON), "-I", "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert sum(map(len, contents(folder).values())) <= 12 * 1024 * 1024


@pytest.mark.parametrize("build", [build_dispatcher, build_gateway])
def test_another_table_has_the_same_packages_without_an_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: Callable[[Path, Target, bytes], Path]
) -> None:
    target = Target(interpreter=CLOUD_PYTHON)
    first = contents(build(tmp_path, target, b"1"))
    monkeypatch.setattr(functions, "install", None)
    second = contents(build(tmp_path, target, b"2"))
    assert (first.pop("mesh.json"), second.pop("mesh.json")) == (b"1", b"2")
    assert first == second
    assert len(first) > 10


def test_job_code(tmp_path: Path) -> None:
    files = build_jobs(tmp_path, SPARK, HERE / "mesh" / "jobs")
    assert files.entry_point.suffix == ".py"
    assert {"asya", "asya_spark"} == {path.name for path in files.library.iterdir()}
    assert unpacked(files.jobs).keys() == {"heavy.py"}
    assert files.packages is None


def test_the_users_jobs_exclude_the_job_library(tmp_path: Path) -> None:
    files = build_jobs(tmp_path, SPARK, PROJECT / "spark_jobs")
    assert {name.partition("/")[0] for name in unpacked(files.jobs)} == {"flights"}


def jobs_folder(folder: Path, requirements: str) -> Path:
    folder.mkdir()
    (folder / "heavy.py").write_text("def crunch(spark, payload): return payload\n")
    (folder / "requirements.txt").write_text(requirements)
    return folder


@pytest.mark.parametrize(("architecture", "machine"), [("aarch64", AARCH64), ("x86_64", X86_64)])
def test_packages_of_jobs_are_for_the_application(tmp_path: Path, architecture: str, machine: int) -> None:
    jobs = jobs_folder(tmp_path / "jobs", "jmespath\nmsgspec\n")
    files = build_jobs(tmp_path / "build", Target("3.12", f"{architecture}-manylinux_2_28"), jobs)
    content = packed(files)
    assert {"jmespath/__init__.py", "msgspec/__init__.py"} <= content.keys()
    libraries = {name: file for name, file in content.items() if name.endswith(".so")}
    assert libraries
    assert all("312" in name for name in libraries)
    assert {int.from_bytes(file[18:20], "little") for file in libraries.values()} == {machine}
    assert unpacked(files.jobs).keys() == {"heavy.py", "requirements.txt"}


def test_the_same_packages_are_the_same_archive(tmp_path: Path) -> None:
    """Its name is a hash of its content, and neither the time nor the place of the build is part of it."""
    jobs = jobs_folder(tmp_path / "jobs", "msgspec\n")
    first, second = (build_jobs(tmp_path / name, SPARK, jobs).packages for name in ("one", "two"))
    assert first is not None
    assert second is not None
    assert first.archive.read_bytes() == second.archive.read_bytes()
    assert first.digest == second.digest
    with tarfile.open(first.archive) as archive:
        owners = {(member.uid, member.gid, member.uname, member.mtime) for member in archive.getmembers()}
    assert owners == {(0, 0, "", 0)}


def test_changed_jobs_keep_their_packages(tmp_path: Path) -> None:
    jobs = jobs_folder(tmp_path / "jobs", "msgspec\n")
    before = build_jobs(tmp_path / "build", SPARK, jobs)
    (jobs / "heavy.py").write_text("def crunch(spark, payload): return None\n")
    after = build_jobs(tmp_path / "build", SPARK, jobs)
    assert after.jobs != before.jobs
    assert after.packages == before.packages
    (jobs / "requirements.txt").write_text("-r more.txt\n")
    (jobs / "more.txt").write_text("jmespath\n")
    assert "jmespath/__init__.py" in packed(build_jobs(tmp_path / "build", SPARK, jobs))
    (jobs / "more.txt").write_text("six\n")
    assert "six.py" in packed(build_jobs(tmp_path / "build", SPARK, jobs))


def test_a_requirements_file_without_packages_makes_no_archive(tmp_path: Path) -> None:
    jobs = jobs_folder(tmp_path / "jobs", "# none yet\n")
    assert build_jobs(tmp_path / "build", SPARK, jobs).packages is None
    assert not list((tmp_path / "build").glob("job-packages*"))


def test_drivers_that_call_aws_bring_boto3_for_these_calls_alone(tmp_path: Path) -> None:
    files = build_jobs(tmp_path / "build", SPARK, HERE / "mesh" / "jobs", aws_client=True)
    content = packed(files)
    assert {name.partition("/")[0] for name in content} == {AWS_CLIENT}
    data = f"{AWS_CLIENT}/botocore/data/"
    services = {name.removeprefix(data).partition("/")[0] for name in content if name.startswith(data)}
    assert {"s3", "secretsmanager", "ssm", "endpoints.json", "partitions.json"} <= services
    assert "ec2" not in services


@pytest.mark.parametrize(("requirement", "package"), [("pyspark", "pyspark"), ("pyarrow==0.17.0", "pyarrow==0.17.0")])
def test_a_package_without_a_wheel_is_named(tmp_path: Path, requirement: str, package: str) -> None:
    """With its platform, and what to do."""
    jobs = jobs_folder(tmp_path / "jobs", f"{requirement}\n")
    message = (
        rf"requirements\.txt.*: {package} has no wheel for Python 3\.12 on aarch64-manylinux_2_28\. Require a version"
    )
    with pytest.raises(PackagesError, match=message):
        build_jobs(tmp_path / "build", SPARK, jobs)


def test_the_job_side_needs_nothing_that_a_job_does_not_have() -> None:
    """Job runs have Spark and the standard library; the layer's packages are not among them."""
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('msgspec', 'aws_lambda_powertools', 'boto3', 'pydantic')));"
        f"sys.path[:0] = [{str(PROJECT / 'functions')!r}, {str(PROJECT / 'spark_jobs')!r}]; import asya_spark.main"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_what_is_not_deployed_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment beside the code has thousands of files."""
    kept = [tmp_path / name for name in ("a/b.py", "a.py", "a/c/d.py", "a/e.pyc", "a/shop.egg-info/z")]
    skipped = [tmp_path / name for name in (".venv/lib/x.py", "a/node_modules/y.js", "a/__pycache__/f.pyc", ".env")]
    for file in (*kept, *skipped):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    scanned: list[str] = []
    scan = os.scandir

    def recording(folder: str) -> object:
        scanned.append(str(folder))
        return scan(folder)

    monkeypatch.setattr(os, "scandir", recording)
    assert sorted(source_files(tmp_path)) == sorted(kept)
    assert sorted(scanned) == [str(tmp_path / name) for name in (".", "a", "a/c", "a/shop.egg-info")]
