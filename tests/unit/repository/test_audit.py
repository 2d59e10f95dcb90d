"""What `make audit` says of findings, of reasons, and of sources that do not answer."""

import json
from typing import Any

import pytest

from tests import audit
from tests.audit import Checked, Finding, judge

OPEN = Finding("B310", "a.py", "line 3: open")
CODE = Checked("code", "code", (OPEN,))
LOOKED_UP = Checked("packages", "advisories", (Finding("GHSA-1", "jinja2==2.4.1", "bad"),))
UNREACHABLE = Checked("packages", "advisories", unchecked=("it does not answer",))


@pytest.mark.parametrize(
    ("reasons", "problems"),
    [
        ({}, ["no reason: B310 a.py: line 3: open"]),
        ({"B310 b.py": "r"}, ["no reason: B310 a.py: line 3: open", "reason without a finding: B310 b.py"]),
        ({"B310 a.py": "r"}, []),
        ({"B310": "r"}, []),
        ({"B310": " "}, ["empty reason: B310"]),
        ({"B310": "r", "B999": "r"}, ["reason without a finding: B999"]),
    ],
)
def test_each_finding_has_a_reason_and_each_reason_a_finding(reasons: dict[str, str], problems: list[str]) -> None:
    verdict = judge([CODE], {"code": reasons})
    assert list(verdict.problems) == problems
    assert verdict.exit_code(strict=False) == bool(problems)


def test_a_source_that_does_not_answer_is_named_and_fails_only_if_strict() -> None:
    verdict = judge([CODE, UNREACHABLE], {"code": {"B310": "r"}, "advisories": {}})
    assert verdict.unchecked == ("packages: it does not answer",)
    assert (verdict.exit_code(strict=False), verdict.exit_code(strict=True)) == (0, 1)


def test_reasons_are_not_stale_while_a_source_does_not_answer() -> None:
    reasons = {"advisories": {"GHSA-1": "r"}}
    assert judge([LOOKED_UP, UNREACHABLE], reasons).problems == ()
    assert judge([UNREACHABLE], reasons).problems == ()
    assert judge([Checked("packages", "advisories")], reasons).problems == ("reason without a finding: GHSA-1",)


def test_advisories_fail_the_audit() -> None:
    assert judge([LOOKED_UP], {}).problems == ("no reason: GHSA-1 jinja2==2.4.1: bad",)


def test_the_report_of_bandit() -> None:
    result = {"test_id": "B310", "filename": "./a.py", "line_number": 3, "issue_text": "open"}
    assert audit.bandit_findings(json.dumps({"errors": [], "results": [result]})) == [OPEN]
    with pytest.raises(ValueError, match="no module"):
        audit.bandit_findings(json.dumps({"errors": [{"reason": "no module"}], "results": []}))


def test_the_report_of_pip_audit_with_packages_that_it_skipped() -> None:
    vulnerable: dict[str, Any] = {"name": "jinja2", "version": "2.4.1"}
    vulnerable["vulns"] = [{"id": "GHSA-1", "fix_versions": [], "aliases": [], "description": "bad\nvery"}]
    report = {"dependencies": [vulnerable, {"name": "x", "skip_reason": "unknown"}], "fixes": []}
    assert audit.pip_findings(json.dumps(report)) == (
        [Finding("GHSA-1", "jinja2==2.4.1", "bad")],
        ["x was skipped: unknown"],
    )
    assert audit.pip_findings(json.dumps(report))[0][0].detail == "bad"


def test_the_report_of_npm_audit() -> None:
    advisory = {"name": "ws", "severity": "high", "title": "bad", "url": "https://github.com/advisories/GHSA-2"}
    report = {"vulnerabilities": {"ws": {"via": [advisory]}, "aws-cdk": {"via": ["ws"]}}}
    assert audit.npm_findings(json.dumps(report)) == [Finding("GHSA-2", "ws", "high: bad")]
    assert audit.npm_findings('{"vulnerabilities": {}}') == []
    with pytest.raises(ValueError, match="405"):
        audit.npm_findings('{"message": "405 Method Not Allowed", "error": {"summary": "", "detail": ""}}')


@pytest.mark.parametrize("error", [OSError("no such name"), ValueError("it knows no advisory")])
def test_packages_are_not_clean_because_the_source_is_away(error: Exception) -> None:
    def reach() -> None:
        raise error

    checked = audit.check_python_packages(reach)
    assert checked.findings == ()
    assert str(error) in checked.unchecked[0]


def test_reasons_of_files_name_existing_files() -> None:
    for key, reason in audit.read_reasons()["code"].items():
        assert reason.strip()
        _, _, file = key.partition(" ")
        assert not file or (audit.PROJECT / file).is_file(), key
