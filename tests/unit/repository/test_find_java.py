"""Tests `scripts/find-java`, which selects the Java installation for Spark."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.paths import PROJECT

SCRIPT = PROJECT / "scripts" / "find-java"
SPARK_MODULE = "jdk.incubator.vector"


def fake_java(home: Path, version: str, modules: str = f"java.base@0\n{SPARK_MODULE}@0") -> Path:
    """Creates a Java stub that prints its version and its modules."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}" 2026-01-01\' >&2\n'
        f"else printf '%s\\n' '{modules}'; fi\n"
    )
    program.chmod(0o755)
    return home


def find(java_home: Path | None, *on_path: Path) -> str:
    """Runs the script with these Java homes and returns the one that it prints."""
    path = os.pathsep.join([*(str(home / "bin") for home in on_path), os.environ["PATH"]])
    environment = {"PATH": path, "HOME": "/nowhere"}
    if java_home is not None:
        environment["JAVA_HOME"] = str(java_home)
    process = subprocess.run(
        ["bash", str(SCRIPT), "--no-install"], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2"])
def test_java_home_is_used_if_spark_supports_it(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "home", version)
    assert find(home, fake_java(tmp_path / "path", "17.0.1")) == str(home)


@pytest.mark.parametrize(
    ("version", "modules"), [("1.8.0_412", ""), ("11.0.2", SPARK_MODULE), ("17.0.15", "java.base@17.0.15")]
)
@pytest.mark.slow
def test_a_java_without_spark_support_is_skipped(tmp_path: Path, version: str, modules: str) -> None:
    unsupported = fake_java(tmp_path / "unsupported", version, modules)
    supported = fake_java(tmp_path / "supported", "17.0.15")
    assert find(unsupported, supported) == str(supported)


@pytest.mark.slow
def test_java_17_is_preferred_to_a_newer_unsupported_version(tmp_path: Path) -> None:
    newer = fake_java(tmp_path / "newer", "25.0.1")
    assert find(newer, fake_java(tmp_path / "path", "17.0.15")) == str(tmp_path / "path")


@pytest.mark.slow
def test_a_missing_java_home_is_skipped(tmp_path: Path) -> None:
    supported = fake_java(tmp_path / "supported", "17.0.15")
    assert find(tmp_path / "nowhere", supported) == str(supported)


def test_quiet_prints_nothing(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "17.0.15")
    environment = {"PATH": os.environ["PATH"], "JAVA_HOME": str(home)}
    process = subprocess.run(
        ["bash", str(SCRIPT), "--quiet"], env=environment, capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, "", "")


@pytest.mark.parametrize("too_new", [False, True])
def test_without_java_one_line_tells_how_to_install_it(tmp_path: Path, too_new: bool) -> None:
    script = tmp_path / "find-java"  # a copy that ignores the Java installations of this machine
    script.write_text(SCRIPT.read_text().replace("/usr/lib/jvm/*", "/nowhere/*"))
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("readlink", "dirname", "sed", "head", "id"):
        (tools / tool).symlink_to(next(p for d in ("/usr/bin", "/bin") if (p := Path(d, tool)).exists()))
    bash = next(p for d in ("/usr/bin", "/bin") if (p := Path(d, "bash")).exists())
    (tools / "sh").symlink_to(bash)
    environment = {"PATH": str(tools)} | ({"JAVA_HOME": str(fake_java(tmp_path / "25", "25.0.1"))} if too_new else {})
    process = subprocess.run(
        [str(bash), str(script), "--no-install"], env=environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 1
    [line] = process.stderr.splitlines()
    assert "Java 17 or 21 is needed" in line
    assert "apt-get install" in line
