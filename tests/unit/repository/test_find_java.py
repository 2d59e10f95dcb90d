"""`scripts/find-java`: which Java Spark gets, among those that a machine may have."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.paths import PROJECT

SCRIPT = PROJECT / "scripts" / "find-java"
SPARK_MODULE = "jdk.incubator.vector"


def fake_java(home: Path, version: str, modules: str = f"java.base@0\n{SPARK_MODULE}@0") -> Path:
    """A Java that only tells its version and its modules."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}" 2026-01-01\' >&2\n'
        f"else printf '%s\\n' '{modules}'; fi\n"
    )
    program.chmod(0o755)
    return home


def find(java_home: Path | None, *on_path: Path) -> str:
    """What the script finds; only what is given here is a 17 or 21, unless the machine has one of its own."""
    path = os.pathsep.join([*(str(home / "bin") for home in on_path), os.environ["PATH"]])
    environment = {"PATH": path, "HOME": "/nowhere"}
    if java_home is not None:
        environment["JAVA_HOME"] = str(java_home)
    done = subprocess.run(
        ["bash", str(SCRIPT), "--no-install"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2"])
def test_java_home_is_taken_if_spark_supports_it(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path / "home", version)
    assert find(home, fake_java(tmp_path / "path", "17.0.1")) == str(home)


@pytest.mark.parametrize(
    ("version", "modules"), [("1.8.0_412", ""), ("11.0.2", SPARK_MODULE), ("17.0.15", "java.base@17.0.15")]
)
def test_a_java_that_does_not_run_spark_is_passed_over(tmp_path: Path, version: str, modules: str) -> None:
    unfit = fake_java(tmp_path / "unfit", version, modules)
    fit = fake_java(tmp_path / "fit", "17.0.15")
    assert find(unfit, fit) == str(fit)


def test_seventeen_is_preferred_to_a_newer_one_that_spark_does_not_support(tmp_path: Path) -> None:
    newer = fake_java(tmp_path / "newer", "25.0.1")
    assert find(newer, fake_java(tmp_path / "path", "17.0.15")) == str(tmp_path / "path")


def test_a_java_home_that_leads_nowhere_is_passed_over(tmp_path: Path) -> None:
    fit = fake_java(tmp_path / "fit", "17.0.15")
    assert find(tmp_path / "nowhere", fit) == str(fit)


def test_quiet_says_nothing(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "17.0.15")
    environment = {"PATH": os.environ["PATH"], "JAVA_HOME": str(home)}
    done = subprocess.run(
        ["bash", str(SCRIPT), "--quiet"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_where_there_is_none_the_person_is_told_in_one_line(tmp_path: Path) -> None:
    script = tmp_path / "find-java"  # the same, but blind to what this machine has
    script.write_text(SCRIPT.read_text().replace("/usr/lib/jvm/*", "/nowhere/*"))
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("readlink", "dirname", "sed", "head", "id"):
        (tools / tool).symlink_to(next(p for d in ("/usr/bin", "/bin") if (p := Path(d, tool)).exists()))
    bash = next(p for d in ("/usr/bin", "/bin") if (p := Path(d, "bash")).exists())
    done = subprocess.run(
        [str(bash), str(script), "--no-install"], env={"PATH": str(tools)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert "Java 17 or 21 is needed" in line
    assert "apt-get install" in line
