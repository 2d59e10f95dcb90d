"""Environments of an installed package are made once, whole, and told; those of a checkout are found."""

import io
import os
import subprocess
import sys
import tarfile
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

from asya_infra.build.folder import CacheError, build_once
from asya_infra.product import environments
from asya_infra.product.environments import EnvironmentsError, Part, packages_of, python_of, spark_path
from asya_infra.product.meters import Meter, folder_size, metered


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The files of an installed package whose local cloud needs no package."""
    (tmp_path / "files" / "requirements").mkdir(parents=True)
    (tmp_path / "files" / "requirements" / "cloud.txt").write_text("")
    (tmp_path / "files" / "requirements" / "options.txt").write_text("--only-binary :all:\n")
    monkeypatch.setattr(environments, "IS_INSTALLED", True)
    monkeypatch.setattr(environments, "FILES", tmp_path / "files")
    monkeypatch.setattr(environments, "CACHE", tmp_path / "cache")
    return tmp_path


def test_an_environment_is_made_once_and_that_is_told(installed: Path) -> None:
    told: list[str] = []
    with ThreadPoolExecutor(2) as executor:
        first, second = executor.map(lambda _: python_of(Part.CLOUD, told.append), range(2))
    assert first == second == python_of(Part.CLOUD, told.append)
    assert first.exists()
    assert [line for line in told if not line.startswith(" ")] == [
        f"installing the local cloud (70 MB), once, into {first.parent.parent}"
    ]


def test_progress_is_told_and_versions_are_those_of_the_file(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own constraints have no say."""
    (tmp_path / "constraints.txt").write_text("part==2\n")
    monkeypatch.setenv("UV_CONSTRAINT", str(tmp_path / "constraints.txt"))
    wheel = tmp_path / "part-1-py3-none-any.whl"
    with ZipFile(wheel, "w") as file:
        file.writestr("part.py", "")
        file.writestr("part-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: part\nVersion: 1\n")
        file.writestr("part-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr("part-1.dist-info/RECORD", "")
    digest = sha256(wheel.read_bytes()).hexdigest()
    (installed / "files" / "requirements" / "cloud.txt").write_text(f"part @ {wheel.as_uri()} --hash=sha256:{digest}\n")
    told: list[str] = []
    python_of(Part.CLOUD, told.append)
    assert [line.split(" in ")[0] for line in told[1:]] == ["  Prepared 1 package", "  Installed 1 package"]


def test_what_a_killed_process_left_is_made_anew(installed: Path) -> None:
    folder = python_of(Part.CLOUD).parent.parent
    (folder / ".installed").unlink()
    (folder / "half").touch()
    assert python_of(Part.CLOUD).exists()
    assert not (folder / "half").exists()


def test_other_packages_are_another_environment_and_an_unused_one_goes(installed: Path) -> None:
    first = python_of(Part.CLOUD).parent.parent
    os.utime(first / ".installed", (0, 0))
    (installed / "files" / "requirements" / "cloud.txt").write_text("# changed\n")
    second = python_of(Part.CLOUD).parent.parent
    assert second != first
    assert second.exists()
    assert not first.exists()


def test_a_package_that_cannot_be_installed_is_told(installed: Path) -> None:
    missing = installed / "missing.whl"
    (installed / "files" / "requirements" / "cloud.txt").write_text(f"{missing} --hash=sha256:{'0' * 64}\n")
    with pytest.raises(EnvironmentsError, match=r"the local cloud .* cannot be installed") as caught:
        python_of(Part.CLOUD)
    assert "missing.whl" in str(caught.value)


def test_a_package_that_is_gone_is_named_with_the_repair(installed: Path) -> None:
    with pytest.raises(
        EnvironmentsError, match=r"lacks pyspark in .*\. Remove .*environments and run the command again"
    ):
        packages_of(Part.CLOUD, ("pyspark",))


def test_a_checkout_has_its_own_environments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert python_of(Part.CDK) == Path(sys.executable)
    assert packages_of(Part.SPARK, ("pyspark",))[0].name == "pyspark"
    [linked] = spark_path()
    assert {each.name for each in linked.iterdir()} == {"pyspark", "py4j"}
    monkeypatch.setattr(environments, "FILES", tmp_path)
    with pytest.raises(EnvironmentsError, match="Run `make setup`"):
        python_of(Part.CLOUD)


def test_a_cache_that_cannot_be_written_is_named_with_the_variable(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed / "cache").write_text("a file, and no folder")
    with pytest.raises(CacheError, match=r"the cache .*environments cannot be written: .*XDG_CACHE_HOME"):
        python_of(Part.CLOUD)
    with pytest.raises(CacheError, match=r"cannot be written: "):
        build_once(installed / "cache", "table", ["a"], lambda folder: None)


def test_the_parts_need_no_uv() -> None:
    """The environments of Spark and of Iceberg find Java and the packages of jobs by the same modules, without the installer."""
    code = "import sys; sys.modules['uv'] = None; import asya_local.tools, asya_local.emr.drivers.job_environment"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})


BUILDS_WITH_A_MARK = """
import os, pathlib, zipfile
pathlib.Path({mark!r}).touch()
def get_requires_for_build_wheel(*_): return []
def build_wheel(folder, *_):
    with zipfile.ZipFile(os.path.join(folder, "part-1-py3-none-any.whl"), "w") as file:
        file.writestr("part.py", "")
        file.writestr("part-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: part\\nVersion: 1\\n")
        file.writestr("part-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        file.writestr("part-1.dist-info/RECORD", "")
    return "part-1-py3-none-any.whl"
class __legacy__:
    get_requires_for_build_wheel = staticmethod(get_requires_for_build_wheel)
    build_wheel = staticmethod(build_wheel)
"""


def setuptools_wheel(folder: Path, version: str, mark: Path) -> Path:
    """A `setuptools` that leaves a mark when it runs."""
    wheel = folder / f"setuptools-{version}-py3-none-any.whl"
    with ZipFile(wheel, "w") as file:
        file.writestr("setuptools/__init__.py", "")
        file.writestr("setuptools/build_meta.py", BUILDS_WITH_A_MARK.format(mark=str(mark)))
        file.writestr(
            f"setuptools-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: setuptools\nVersion: {version}\n"
        )
        file.writestr(
            f"setuptools-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"setuptools-{version}.dist-info/RECORD", "")
    return wheel


def pinned(name: str, file: Path) -> str:
    return f"{name} @ {file.as_uri()} --hash=sha256:{sha256(file.read_bytes()).hexdigest()}\n"


def archive(folder: Path, *, build_requirement: str = "") -> Path:
    """The source of the package `part`."""
    path = folder / "part-1.tar.gz"
    files = {"PKG-INFO": "Metadata-Version: 2.1\nName: part\nVersion: 1\n", "setup.py": "import setuptools"}
    if build_requirement:
        files["pyproject.toml"] = f"[build-system]\nrequires = ['setuptools', '{build_requirement}']\n"
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"part-1/{name}")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize("build_requirement", ["", "other"])
def test_a_source_is_built_by_pinned_code_only(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build_requirement: str
) -> None:
    """The index has a newer `setuptools`, and another package that the source asks for: code that no hash names."""
    index, wheels = tmp_path / "index", tmp_path / "wheels"
    index.mkdir()
    wheels.mkdir()
    hostile, ours = tmp_path / "hostile", tmp_path / "ours"
    setuptools_wheel(index, "999", hostile)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(index))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    requirements = installed / "files" / "requirements"
    (requirements / "options.txt").write_text("--only-binary :all:\n--no-binary part\n")
    (requirements / "build.txt").write_text(pinned("setuptools", setuptools_wheel(wheels, "80", ours)))
    (requirements / "demo.txt").write_text(pinned("part", archive(wheels, build_requirement=build_requirement)))
    packages_of(Part.DEMO, (".",))
    assert not hostile.exists()
    assert ours.exists()
    site = packages_of(Part.DEMO, (".",))[0]
    assert (site / "part.py").exists()
    assert not (site / "setuptools").exists()


@pytest.fixture
def built(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data of the demo is built, and each build leaves a mark."""
    mark = tmp_path / "mark"
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    requirements = installed / "files" / "requirements"
    (requirements / "options.txt").write_text("--only-binary :all:\n--no-binary part\n")
    (requirements / "build.txt").write_text(pinned("setuptools", setuptools_wheel(tmp_path, "80", mark)))
    (requirements / "demo.txt").write_text(pinned("part", archive(tmp_path)))
    return mark


def test_what_is_built_is_built_once_for_all_environments_and_shares_its_files(
    built: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [first] = packages_of(Part.DEMO, (".",))
    assert built.exists()
    built.unlink()
    (first.parents[2] / ".installed").unlink()  # as if a process had been killed
    [again] = packages_of(Part.DEMO, (".",))
    monkeypatch.setattr(environments.platform, "python_version", lambda: "3.99.0")
    [other] = packages_of(Part.DEMO, (".",))
    assert again == first
    assert other != first
    assert not built.exists()
    assert (first / "part.py").samefile(other / "part.py")
    assert not any((installed / "cache" / "packages").glob(".*"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demo.txt", "build.txt", "options.txt"])
def test_other_pins_are_other_packages(built: Path, installed: Path, name: str) -> None:
    packages_of(Part.DEMO, (".",))
    with (installed / "files" / "requirements" / name).open("a") as file:
        file.write("# changed\n")
    packages_of(Part.DEMO, (".",))
    assert len([*(installed / "cache" / "packages").iterdir()]) == 2


def test_a_build_that_fails_leaves_nothing(built: Path, installed: Path) -> None:
    (installed / "files" / "requirements" / "build.txt").write_text("")
    with pytest.raises(EnvironmentsError, match=r"the data of the demo .* cannot be installed"):
        packages_of(Part.DEMO, (".",))
    assert not any((installed / "cache" / "packages").iterdir())
    assert not any(path.name.endswith("-cache") for path in (installed / "cache").rglob(".*"))


def test_what_uv_does_not_have_yet_is_not_kept_twice(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first installation, without a network, fails here as it does where uv has no package yet."""
    commands: list[list[str]] = []

    def run(part: Part, command: list[str], *_: object, **__: object) -> None:
        commands.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir()
        if "--offline" in command:
            raise EnvironmentsError
        if "--cache-dir" in command:
            Path(command[-1]).mkdir()

    monkeypatch.setattr(environments, "_run", run)
    python_of(Part.CLOUD)
    caches = [command[-1] for command in commands if "--cache-dir" in command]
    assert len(caches) == 1
    assert Path(caches[0]).is_relative_to(installed / "cache")
    assert not Path(caches[0]).exists()


def test_each_tenth_of_an_installation_is_told_with_its_bytes_and_a_bar() -> None:
    told: list[str] = []
    meter = Meter("Spark", 480, told.append)
    for megabytes in (0, 47, 48, 50, 250, 240, 480, 500):
        meter.look(megabytes * 1_000_000)
    assert told == [
        "█░░░░░░░░░ Spark: 48 of about 480 MB",
        "█████░░░░░ Spark: 250 of about 480 MB",
        "██████████ Spark: 480 of about 480 MB",
    ]


def test_a_folder_that_has_files_already_is_metered_by_what_comes(tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "before").write_bytes(bytes(3_000_000))
    with metered(tmp_path, Meter("Python 3.13", 10, told.append)):
        (tmp_path / "new").write_bytes(bytes(10_000_000))
    assert told == ["██████████ Python 3.13: 10 of about 10 MB"]


def test_the_bytes_of_a_folder_are_counted_while_files_go(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert folder_size(tmp_path) >= 5
    assert folder_size(tmp_path / "nowhere") == 0


def test_a_source_that_nobody_named_is_not_built(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    (installed / "files" / "requirements" / "cloud.txt").write_text(pinned("part", archive(tmp_path)))
    with pytest.raises(EnvironmentsError, match="Building source distributions for `part` is disabled"):
        python_of(Part.CLOUD)
