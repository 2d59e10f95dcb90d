"""`python -m tests.make_targets [TARGET...]`: runs each target of the Makefile alone, in a fresh clone of what is committed.

Each recipe runs whole, with fewer tests where it runs many. Exits with 1 if one fails, or leaves a change behind.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.paths import PROJECT

LOGS = PROJECT / ".build" / "make-targets"
_SHOWN_LINES = 15


@dataclass(frozen=True)
class Target:
    """How a target runs here.

    Attributes:
        variables: What is typed after its name.
        tests: Which tests run, as `pytest -k` takes it; empty for all.
        left_out: Why it does not run. `make -n` then shows that its commands can be made.
    """

    variables: tuple[str, ...] = ()
    tests: str = ""
    left_out: str = ""


TARGETS = {
    "help": Target(),
    "setup": Target(),
    "java": Target(),
    "lint": Target(),
    "types": Target(),
    "quick": Target(tests="test_route"),
    "quick-tests": Target(tests="test_route"),
    "test": Target(tests="test_route"),
    "tests": Target(tests="test_route"),
    "test-full": Target(left_out="it takes hours, and runs this script"),
    "iceberg": Target(),
    "chaos": Target(left_out="it takes 20 minutes, and `make test-full` runs its command"),
    "audit": Target(),
    "mutation": Target(left_out="it takes 15 minutes, and `make test-full` runs its command"),
    "coverage": Target(tests="test_route"),
    "wheel": Target(),
    "rules": Target(),
    "console-types": Target(),
    "generated": Target(),
    "docs": Target(),
    "docs-serve": Target(left_out="it runs until Ctrl-C; `docs` builds what it serves"),
    "bench": Target(),
    "demo": Target(),
    "synth": Target(),
    "deploy": Target(variables=("OPTIONS=--help",)),
    "destroy": Target(variables=("OPTIONS=--help",)),
    "lock": Target(),
}
"""All targets. Deployments need an account of AWS, so that only the help of their commands is shown."""


def main() -> None:
    """Run the targets that are named, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.make_targets", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", choices=[*TARGETS, []], help="only these targets")
    chosen = parser.parse_args().targets or list(TARGETS)
    LOGS.mkdir(parents=True, exist_ok=True)
    failed = [name for name in chosen if not _run(name, TARGETS[name])]
    print(f"{len(chosen) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


def _run(name: str, target: Target) -> bool:
    """Run a target in a clone that ends with it, say how it went, and return whether it went well."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="asya-make-") as folder:
        clone = Path(folder) / "asya"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(PROJECT), str(clone)], check=True)
        command = ["make", *(["-n"] if target.left_out else []), name, *target.variables]
        own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        options = {"PYTEST_ADDOPTS": f"-k {target.tests}"} if target.tests else {}
        log = LOGS / f"{name}.log"
        with log.open("w") as output:
            code = subprocess.run(
                command,
                cwd=clone,
                env=own | options,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
            ).returncode
        changed = subprocess.run(
            ["git", "status", "--porcelain"], cwd=clone, capture_output=True, text=True, check=True
        ).stdout
    is_good = code == 0 and not changed
    how = f"not run: {target.left_out}" if target.left_out else f"{time.monotonic() - began:.0f} s"
    print(f"{'✔' if is_good else '✘'} {name:<12} {how}", flush=True)
    if not is_good:
        print("\n".join(log.read_text(errors="replace").splitlines()[-_SHOWN_LINES:]))
        print(f"exit code {code}, whole output: {log}")
        print(f"changed in the clone:\n{changed}" if changed else "", end="", flush=True)
    return is_good


if __name__ == "__main__":
    main()
