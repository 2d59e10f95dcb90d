"""Environments of an installed package are made once, whole, and told; those of a checkout are found."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

from asya_infra.build.folder import CacheError, build_once
from asya_infra.product import environments
from asya_infra.product.environments import EnvironmentsError, Part, packages_of, python_of, spark_path


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The files of an installed package whose local cloud needs no package."""
    (tmp_path / "files" / "requirements").mkdir(parents=True)
    (tmp_path / "files" / "requirements" / "cloud.txt").write_text("")
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
