"""Tests `scripts/real-account-smoke` with stand-ins for the programs that it calls. No AWS account is needed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.paths import PROJECT

SCRIPT = PROJECT / "scripts" / "real-account-smoke"
ACCOUNT = "123456789012"
# Prints what the script asks for, and notes every call. $LEFT is what the account still has at the end.
_AWS = """#!/usr/bin/env bash
echo "aws $*" >>"$CALLS"
case "$*" in
  *get-caller-identity*) echo 123456789012 ;;
  *"ssm get-parameter"*) echo 00app ;;
  *application.state*) echo STARTED ;;
  *application.tags.round*) echo second ;;
  *get-resources*) echo "${LEFT:-None}" ;;
esac
"""
_NOTE = """#!/usr/bin/env bash
echo "$(basename "$0") $*" >>"$CALLS"
if [[ "$*" == "${FAILING:-none}"* ]]; then exit 1; fi
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the script among stand-ins."""
    programs = {
        "bin/aws": _AWS,
        "bin/make": _NOTE,
        "bin/sleep": "#!/bin/sh\n",
        ".venv/bin/asya": _NOTE,
        "node_modules/.bin/cdk": _NOTE,
        ".venv/bin/python": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n',
        "scripts/real-account-smoke": SCRIPT.read_text(),
    }
    for name, text in programs.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    (tmp_path / "mesh.yaml").write_text("namespace: flights\ntags: {team: data}\nactors: {}\n")
    return tmp_path


def run(project: Path, *arguments: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Runs the script without a terminal; returns its end and the calls of the stand-ins."""
    calls = project / "calls"
    process = subprocess.run(
        ["bash", str(project / "scripts" / "real-account-smoke"), *arguments],
        env={"PATH": f"{project / 'bin'}:{os.environ['PATH']}", "CALLS": str(calls), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return process, calls.read_text().splitlines() if calls.exists() else []


def programs(calls: list[str]) -> list[str]:
    """The calls of all programs but `aws`, by their first words."""
    return [
        " ".join(call.replace(" --no-print-directory", "").split()[:2]) for call in calls if not call.startswith("aws")
    ]


def test_without_a_terminal_nothing_is_asked_and_nothing_is_deployed(project: Path) -> None:
    process, calls = run(project, "--region", "eu-central-1")
    assert process.returncode == 1
    assert "there is no terminal to ask; start with --yes" in process.stderr
    assert programs(calls) == []


def test_a_wrong_option_prints_the_usage(project: Path) -> None:
    for arguments in (["--now"], ["--region"]):
        process, calls = run(project, *arguments)
        assert (process.returncode, calls) == (2, [])
        assert process.stderr.startswith("usage: scripts/real-account-smoke")


@pytest.mark.slow  # packs the data of the example
def test_the_steps_in_order(project: Path) -> None:
    process, calls = run(project, "--yes", "--region", "eu-central-1")
    assert process.returncode == 0, process.stderr
    assert [call.partition(" -C ")[0] if call.startswith("make") else call.split(" --")[0] for call in calls] == [
        "aws sts get-caller-identity",
        f"cdk bootstrap aws://{ACCOUNT}/eu-central-1",
        "asya doctor",
        "make --no-print-directory",
        "aws s3 cp",
        "asya smoke",
        "aws ssm get-parameter",
        "aws emr-serverless get-application",
        "make --no-print-directory",
        "aws emr-serverless get-application",
        "asya smoke",
        "aws emr-serverless get-application",
        "aws s3 rm",
        "make --no-print-directory",
        "aws s3 rm",
        "aws cloudformation describe-stacks",
        "aws resourcegroupstaggingapi get-resources",
        "aws iam list-roles",
        "aws logs describe-log-groups",
    ]
    makes = [call.split()[4] for call in calls if call.startswith("make")]
    assert makes == ["deploy", "deploy", "destroy"]
    assert not any("--alarms" in call for call in calls)
    assert "All 9 steps succeeded" in process.stdout
    assert not (project / ".build" / "real-account-smoke").exists()


def test_after_a_failed_deployment_the_mesh_stays_and_the_last_lines_say_how_to_remove_it(project: Path) -> None:
    mesh = project / ".build" / "real-account-smoke" / "mesh.yaml"
    process, calls = run(
        project, "--yes", "--region", "eu-central-1", FAILING=f"--no-print-directory -C {project} deploy"
    )
    assert process.returncode != 0
    assert "step 3 of 9 failed" in process.stderr
    assert f"make destroy MESH={mesh} STAGE=smoke OPTIONS=--yes" in process.stderr
    assert f"aws s3 rm --recursive s3://asya-flights-smoke-{ACCOUNT}-eu-central-1" in process.stderr
    assert [call for call in calls if call.startswith("asya smoke")] == []
    written = yaml.safe_load(mesh.read_text())
    assert written["storage"] == {"removal": "delete"}
    assert written["tags"] == {"team": "data", "round": "first"}
    assert written["code"] == str(project / "functions" / "handlers")


@pytest.mark.slow  # packs the data of the example
def test_what_is_left_in_the_account_is_a_failure(project: Path) -> None:
    queue = f"arn:aws:sqs:eu-central-1:{ACCOUNT}:asya-flights-smoke-x-sink"
    process, _ = run(project, "--yes", "--region", "eu-central-1", LEFT=queue)
    assert process.returncode == 1
    assert f"this is left:\n{queue}" in process.stderr


@pytest.mark.slow  # packs the data of the example
def test_a_topic_tests_the_alarms(project: Path) -> None:
    topic = f"arn:aws:sns:eu-central-1:{ACCOUNT}:alarms"
    _, calls = run(project, "--yes", "--region", "eu-central-1", "--topic", topic)
    assert sum("--alarms" in call for call in calls) == 1
