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
_PYTHON = """#!/usr/bin/env bash
if [[ "$2" == tests.real_account.paths ]]; then echo "python $*" >>"$CALLS"; else exec "{}" "$@"; fi
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
        ".venv/bin/python": _PYTHON.format(sys.executable),
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
        "python -m tests.real_account.paths flights-smoke",
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
    assert "All 10 steps succeeded" in process.stdout
    assert not (project / ".build" / "real-account-smoke").exists()


def test_after_a_failed_deployment_the_mesh_stays_and_the_last_lines_say_how_to_remove_it(project: Path) -> None:
    mesh = project / ".build" / "real-account-smoke" / "mesh.yaml"
    process, calls = run(
        project, "--yes", "--region", "eu-central-1", FAILING=f"--no-print-directory -C {project} deploy"
    )
    assert process.returncode != 0
    assert "step 3 of 10 failed" in process.stderr
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


@pytest.mark.slow
def test_all_deploys_changes_and_removes_four_meshes(project: Path) -> None:
    process, calls = run(
        project, "--all", "--yes", "--region", "eu-central-1", "--set", "email=a@example.org", PYTHONPATH=str(PROJECT)
    )
    assert process.returncode == 0, process.stderr
    each = ["asya doctor", "make -C", "asya smoke", "make -C", "asya smoke", "make -C"]
    assert programs(calls) == ["cdk bootstrap", *each * 4]
    makes = [call.split()[4:7] for call in calls if call.startswith("make")]
    folder = project / ".build" / "real-account-smoke"
    assert makes == [
        [action, f"MESH={folder / f'{number}.yaml'}", "STAGE=smoke"]
        for number in range(1, 5)
        for action in ("deploy", "deploy", "destroy")
    ]
    removed = [call for call in calls if call.startswith("aws s3 rm")]
    assert [f"s3://asya-all{number}-smoke-{ACCOUNT}-eu-central-1" in " ".join(removed) for number in range(1, 5)] == [
        True
    ] * 4
    assert "pause notifications: EventBridge may publish to the encrypted topic" in process.stdout
    assert "VPC: needs --set subnets=" in process.stdout
    assert "All 29 steps succeeded" in process.stdout
    assert not folder.exists()


@pytest.mark.slow
def test_the_change_is_deployed_second(project: Path) -> None:
    """The second deployment fails, so the files of the first mesh are still there."""
    (project / "bin" / "make").write_text(
        '#!/usr/bin/env bash\necho "make $*" >>"$CALLS"\n[[ $(grep -c "^make" "$CALLS") != 2 ]]\n'
    )
    process, _ = run(project, "--all", "--yes", "--region", "eu-central-1", PYTHONPATH=str(PROJECT))
    folder = project / ".build" / "real-account-smoke"
    assert process.returncode != 0
    assert "step 5 of 29 failed. The mesh all1-smoke is still there" in process.stderr
    assert f"make destroy MESH={folder / '1.yaml'} STAGE=smoke OPTIONS=--yes" in process.stderr
    assert (folder / "1.yaml").read_text() == (folder / "1-changed.yaml").read_text()


@pytest.mark.slow
def test_the_plan_calls_nothing(project: Path) -> None:
    process, calls = run(project, "--all", "--plan", PYTHONPATH=str(PROJECT))
    assert (process.returncode, calls) == (0, [])
    assert process.stdout.startswith("mesh 1: ")


def test_options_of_all_need_it(project: Path) -> None:
    for arguments in (["--plan"], ["--set", "email=a@example.org"], ["--all", "--topic", "arn"]):
        process, calls = run(project, *arguments)
        assert (process.returncode, calls) == (2, [])


def test_the_script_and_its_page_say_that_it_never_ran_on_aws() -> None:
    """Whoever has run it takes this out, and says where and when."""
    page = (PROJECT / "docs" / "how-to" / "going-to-production.md").read_text()
    assert "Never run on AWS" in SCRIPT.read_text().partition("set -euo")[0]
    assert "**Never run on AWS" in page
