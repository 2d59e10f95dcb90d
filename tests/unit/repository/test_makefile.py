"""Tests that `make help` lists every target, and that continuous integration runs `make test`."""

import re
import subprocess

from tests.make_targets import TARGETS
from tests.paths import PROJECT

INTERNAL = {"java", "quick-tests"}  # parts of setup and quick


def make(*arguments: str) -> str:
    return subprocess.run(["make", "-C", str(PROJECT), *arguments], capture_output=True, text=True, check=True).stdout


def test_help_lists_every_target() -> None:
    targets = set(re.findall(r"^\.PHONY: (\S+)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)) - INTERNAL
    listed = set(re.findall(r"^  make (\S+) +\S", make("--no-print-directory", "help"), re.MULTILINE))
    assert listed == targets


def test_each_target_is_run_alone_in_a_fresh_clone() -> None:
    """Or has a reason why `make test-full` does not."""
    targets = set(re.findall(r"^\.PHONY: (\S+)$", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    assert targets == set(TARGETS)


# Constants name committed files.
_COMMITTED = re.compile(r"\b[A-Z]+\.write_text\(")


def test_one_target_writes_all_that_is_generated() -> None:
    """A module that writes a committed file has a command of its own."""
    writers = {
        ".".join(path.relative_to(PROJECT / root).with_suffix("").parts).removesuffix(".__main__")
        for root, folder in (("infra", "infra"), (".", "tests"), (".", "docs_site"))
        for path in (PROJECT / folder).rglob("*.py")
        for _, main, recipe in [path.read_text(encoding="utf-8").partition('if __name__ == "__main__":\n')]
        if (main and ".write_text(" in recipe) or (path.name == "__main__.py" and _COMMITTED.search(path.read_text()))
    }
    recipes = make("--dry-run", "--always-make", "generated")
    assert {"asya_infra.permissions.page", "docs_site.reference.actor_keys", "tests.infra.dashboard_picture"} <= writers
    assert {module for module in writers if f"-m {module}\n" not in recipes} == set()


def test_make_without_a_target_prints_the_help() -> None:
    assert make("--no-print-directory") == make("--no-print-directory", "help")


def test_continuous_integration_runs_make_test() -> None:
    assert (PROJECT / ".ci" / "run").read_text().rstrip().endswith("exec make test")
    assert (PROJECT / ".github" / "workflows" / "ci.yml").read_text().rstrip().endswith("- run: make test")
