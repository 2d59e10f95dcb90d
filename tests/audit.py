"""Audits what is shipped: the code by bandit, the pinned packages by published advisories, the templates by checkov and cfn-lint.

A finding that stays has its reason in pyproject.toml, under `[tool.asya-audit]`. A reason without a finding is an error too.

    python -m tests.audit            as `make audit` does; the exit code is 1 if something is unexplained
    python -m tests.audit --strict   the exit code is 1 also if a source of advisories cannot be reached

The advisories of Python packages are those of OSV (https://osv.dev), those of npm packages come from npm's registry. Where a
source does not answer, its packages were not checked: the output says so, and does not call them clean.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.paths import PROJECT

_BIN = Path(sys.executable).parent
TOOLS = PROJECT / ".venv-audit" / "bin"
CODE = ("functions", "spark_jobs", "infra", "asya_cli", "app.py")
TEMPLATE_TESTS = ("tests/infra/test_checkov.py", "tests/infra/test_clean.py")
OSV = "https://api.osv.dev/v1/query"
# A version with published advisories: a source that knows none of them is no source.
_VULNERABLE = {"package": {"name": "jinja2", "ecosystem": "PyPI"}, "version": "2.4.1"}
_SECONDS = 10.0


@dataclass(frozen=True, order=True)
class Finding:
    """A finding of a tool.

    Attributes:
        rule: the check, such as `B310`, or the advisory.
        place: the file, or the package with its version.
        detail: the line and the text of the tool.
    """

    rule: str
    place: str
    detail: str = field(compare=False)

    @property
    def keys(self) -> tuple[str, str]:
        """The keys under which a reason may stand: for one place, or for all."""
        return f"{self.rule} {self.place}", self.rule

    def __str__(self) -> str:
        return f"{self.rule} {self.place}: {self.detail}"


@dataclass(frozen=True)
class Checked:
    """The findings of one tool.

    Attributes:
        name: what was checked.
        table: the table of the reasons.
        unchecked: why something was not checked; empty if all was.
    """

    name: str
    table: str
    findings: tuple[Finding, ...] = ()
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What is wrong, and what was not checked."""

    problems: tuple[str, ...]
    unchecked: tuple[str, ...]

    def exit_code(self, *, strict: bool) -> int:
        return 1 if self.problems or (strict and self.unchecked) else 0


def judge(checked: Sequence[Checked], reasons: Mapping[str, Mapping[str, str]]) -> Verdict:
    """Compare the findings with the reasons.

    Args:
        checked: the findings of all tools.
        reasons: the tables, each with the reasons of its findings.
    """
    problems: list[str] = []
    for table in sorted({each.table for each in checked}):
        accepted = reasons.get(table, {})
        of_table = [each for each in checked if each.table == table]
        findings = [finding for each in of_table for finding in each.findings]
        problems += [f"no reason: {each}" for each in sorted(findings) if not accepted.keys() & set(each.keys)]
        problems += [f"empty reason: {key}" for key, reason in accepted.items() if not reason.strip()]
        found = {key for finding in findings for key in finding.keys}
        # A reason is known to be stale only if everything was checked.
        if not any(each.unchecked for each in of_table):
            problems += [f"reason without a finding: {key}" for key in sorted(accepted.keys() - found)]
    return Verdict(tuple(problems), tuple(f"{each.name}: {text}" for each in checked for text in each.unchecked))


def bandit_findings(report: str) -> list[Finding]:
    """Read a report of bandit (JSON).

    Raises:
        ValueError: bandit could not read a file.
    """
    content = json.loads(report)
    if content["errors"]:
        raise ValueError(f"bandit: {content['errors']}")
    return [
        Finding(
            each["test_id"], each["filename"].removeprefix("./"), f"line {each['line_number']}: {each['issue_text']}"
        )
        for each in content["results"]
    ]


def pip_findings(report: str) -> tuple[list[Finding], list[str]]:
    """Read a report of pip-audit (JSON): the findings, and the packages that it skipped."""
    packages = json.loads(report)["dependencies"]
    findings = [
        Finding(advisory["id"], f"{each['name']}=={each['version']}", _first_line(advisory.get("description", "")))
        for each in packages
        for advisory in each.get("vulns", ())
    ]
    skipped = [f"{each['name']} was skipped: {each['skip_reason']}" for each in packages if "skip_reason" in each]
    return findings, skipped


def npm_findings(report: str) -> list[Finding]:
    """Read a report of npm audit (JSON).

    Raises:
        ValueError: the registry has given no advisories.
    """
    content = json.loads(report)
    if "vulnerabilities" not in content:
        raise ValueError(content.get("message") or "npm's registry gives no advisories")
    advisories = (
        advisory
        for each in content["vulnerabilities"].values()
        for advisory in each["via"]
        if isinstance(advisory, dict)  # a text names another package, which is listed itself
    )
    return [
        Finding(each["url"].rpartition("/")[2], each["name"], f"{each['severity']}: {each['title']}")
        for each in advisories
    ]


def check_code() -> Checked:
    """Run bandit over the code of the product."""
    result = _run(TOOLS / "bandit", "--quiet", "--recursive", "--format", "json", *CODE)
    if result.returncode not in (0, 1):
        raise SystemExit(f"bandit failed: {result.stderr}")
    return Checked("code", "code", tuple(bandit_findings(result.stdout)))


def check_python_packages(reach: Callable[[], None] | None = None) -> Checked:
    """Look up the advisories of all pinned Python packages."""
    name = "Python packages"
    try:
        (reach or _reach_osv)()
    except (OSError, ValueError) as error:
        return Checked(name, "advisories", unchecked=(f"{OSV} cannot be reached: {error}",))
    findings: set[Finding] = set()
    unchecked: list[str] = []
    for file in sorted({each.with_suffix(".txt") for each in (PROJECT / "requirements").glob("*.in")}):
        options = ("--vulnerability-service", "osv", "--disable-pip", "--progress-spinner", "off", "--format", "json")
        result = _run(TOOLS / "pip-audit", *options, "--requirement", file)
        try:
            found, skipped = pip_findings(result.stdout)
        except ValueError:
            unchecked.append(f"{file.name}: {_last_line(result.stderr)}")
        else:
            findings.update(found)
            unchecked += [f"{file.name}: {each}" for each in skipped]
    return Checked(name, "advisories", tuple(sorted(findings)), tuple(unchecked))


def check_npm_packages() -> Checked:
    """Look up the advisories of the CDK's command."""
    result = _run(_BIN / "npm", "audit", "--json")
    try:
        return Checked("npm packages", "advisories", tuple(npm_findings(result.stdout)))
    except ValueError as error:
        return Checked("npm packages", "advisories", unchecked=(str(error) or _last_line(result.stderr),))


def check_templates() -> int:
    """Run the tests that check the templates, all of them; their findings have reasons beside the resources."""
    command = [sys.executable, "-m", "pytest", "-q", *TEMPLATE_TESTS]
    environment = {**os.environ, "ASYA_FULL_SIZE": "1"}
    return subprocess.run(command, cwd=PROJECT, env=environment, check=False).returncode


def read_reasons() -> dict[str, dict[str, str]]:
    """The reasons of findings that stay."""
    tables: dict[str, dict[str, str]] = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["asya-audit"]
    return tables


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.audit", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--strict", action="store_true", help="fail if a source of advisories cannot be reached")
    parser.add_argument("--no-templates", action="store_true", help="leave out the templates")
    options = parser.parse_args(arguments)
    checked = [check_code(), check_python_packages(), check_npm_packages()]
    for each in checked:
        print(f"· {each.name}: {_count(each)}")
    verdict = judge(checked, read_reasons())
    _print("not checked", verdict.unchecked)
    _print("to mend, or to explain in pyproject.toml, [tool.asya-audit]", verdict.problems)
    templates = 0 if options.no_templates else check_templates()
    if verdict.unchecked:
        print("· NOT COMPLETE: " + "; ".join(verdict.unchecked))
    return verdict.exit_code(strict=options.strict) or templates


def _count(checked: Checked) -> str:
    if checked.unchecked and not checked.findings:
        return "NOT CHECKED"
    return f"{len(checked.findings)} findings" + (", INCOMPLETE" if checked.unchecked else "")


def _print(heading: str, lines: Iterable[str]) -> None:
    texts = list(lines)
    if texts:
        print(f"{heading}:", *(f"  {text}" for text in texts), sep="\n")


def _reach_osv() -> None:
    """Ask for a known advisory.

    Raises:
        OSError, ValueError: the source does not answer, or does not know it.
    """
    body = json.dumps(_VULNERABLE).encode()
    request = urllib.request.Request(OSV, data=body, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=_SECONDS) as response:
        if not json.load(response).get("vulns"):
            raise ValueError("it knows no advisory of a version that has some")


def _run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    # npm finds the `node` of the Python packages by the path.
    environment = {**os.environ, "PATH": f"{_BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    texts = [str(each) for each in command]
    return subprocess.run(texts, cwd=PROJECT, capture_output=True, text=True, check=False, env=environment)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:200]


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1][:300]


if __name__ == "__main__":
    sys.exit(main())
