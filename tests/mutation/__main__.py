"""`make mutation`: changes a sample of the code by mutmut, and compares the share that unit tests find with the score.

mutmut takes packages from `src` only, and keeps its results beside them. So it runs on a copy of the project.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping

from tests.mutation.mutants import PACKAGES, Change, Mutant, Sample, sample, survivors
from tests.mutation.scores import JUDGED, SCORES, Score, Verdict, judged, lower, read_scores, write_scores
from tests.paths import PROJECT

SAMPLE = 20
_COPY = PROJECT / ".build" / "mutation"
_INSTALLED = PROJECT / ".venv-mutation"
# What no unit test of these packages reads.
_LEFT_OUT = (
    "console/",
    "bench/",
    "docs_site/",
    "tests/cloud/",
    "tests/console/",
    "tests/chaos/",
    "tests/infra/",
    "tests/spark/",
)
_SETTINGS = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = [{packages}]
also_copy = [{folders}]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
pytest_add_cli_args_test_selection = [{tests}]
track_dependencies = false
use_git_change_detection = false
use_setproctitle = false
"""
# mutmut's packages come behind those of the project, which have the versions that the tests are written for.
_RUN = "import runpy, site, sys; site.addsitedir(sys.argv.pop(1)); runpy.run_module('mutmut', run_name='__main__', alter_sys=True)"


def main() -> int:
    """Run the command line; the exit code is 1 if a mutant lives that nobody has judged, or a score falls."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=SAMPLE, help=f"mutants of each package (default {SAMPLE})")
    parser.add_argument("--processes", type=int, default=2, help="number of processes (default 2)")
    parser.add_argument("--write", action="store_true", help="keep the scores that have risen")
    options = parser.parse_args()
    _copy_project()
    _mutmut("run", "--max-children", str(options.processes), "no.such.mutant", check=False)
    root = _COPY / "mutants" / "src"
    chosen = sample(root, options.sample)
    mutants = chosen.mutants
    _mutmut("run", "--max-children", str(options.processes), *(mutant.name for mutant in mutants), check=True)
    return _report(chosen, survivors(root, mutants), write=options.write)


def _copy_project() -> None:
    shutil.rmtree(_COPY, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        check=True,
        capture_output=True,
    )
    for name in listed.stdout.decode().split("\0"):
        source = PROJECT / name
        if not name or name.startswith(_LEFT_OUT) or not source.is_file():
            continue
        target = _COPY / (f"src/{name.removeprefix('functions/')}" if name.startswith("functions/") else name)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    (_COPY / "functions").symlink_to("src")
    with (_COPY / "pyproject.toml").open("a", encoding="utf-8") as settings:
        settings.write(
            _SETTINGS.format(
                packages=_quoted(f"src/asya/{package}/*" for package in PACKAGES),
                folders=_quoted(
                    path.name for path in _COPY.iterdir() if path.name not in ("src", "functions", "tests")
                ),
                tests=_quoted(f"tests/unit/asya/{package}" for package in PACKAGES),
            )
        )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _mutmut(*arguments: str, check: bool) -> None:
    """Run mutmut in the copy. Without a mutant of a name it fails, after it has written the mutants and timed the tests."""
    (packages,) = _INSTALLED.glob("lib/python*/site-packages")
    # The packages of the copy come before those of the editable install.
    paths = [_COPY / "mutants" / name for name in ("src", "infra", "spark_jobs", ".")]
    for path in paths:
        # Python ignores a folder of its path that does not exist when it first looks there.
        path.mkdir(parents=True, exist_ok=True)
    with (_COPY / "mutmut.log").open("a", encoding="utf-8") as log:
        done = subprocess.run(
            [sys.executable, "-c", _RUN, str(packages), *arguments],
            cwd=_COPY,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
            stdout=log,
            stderr=log,
            check=False,
        )
    if check and done.returncode:
        print((_COPY / "mutmut.log").read_text(encoding="utf-8")[-4000:], file=sys.stderr)
        raise SystemExit(f"mutmut failed; its log is {_COPY / 'mutmut.log'}")


def _report(chosen: Sample, alive: list[Mutant], *, write: bool) -> int:
    known, before = judged(), read_scores()
    scores = {package: _score(package, chosen, alive, known) for package in PACKAGES}
    for package, score in scores.items():
        print(
            f"{package}: {score.mutants} changes of {chosen.all[package]:,}, {score.killed} found, {score.equivalent}"
            f" equivalent: {score.share:.1%}; tests reach {score.reached:.1%}"
        )
    unknown = [each.change for each in alive if each.change not in known]
    for change in unknown:
        print(f"\nno test finds this change of {change.place}, and {JUDGED.name} does not judge it:")
        for sign, text in (("-", change.removed), ("+", change.added)):
            print("\n".join(f"{sign} {line}" for line in text.splitlines()))
    fallen = lower(before, scores)
    for package in fallen:
        print(f"the score of {package} falls from {before[package].share:.1%} to {scores[package].share:.1%}")
    if write and not unknown:
        write_scores(scores | {package: before[package] for package in fallen})
        print(f"wrote {SCORES.relative_to(PROJECT)}")
    return 1 if unknown or fallen else 0


def _score(package: str, chosen: Sample, alive: list[Mutant], known: Mapping[Change, Verdict]) -> Score:
    living = [each for each in alive if each.package == package]
    count = sum(each.package == package for each in chosen.mutants)
    equivalent = sum(known.get(each.change) == "equivalent" for each in living)
    return Score(count, count - len(living), equivalent, round(chosen.reached[package] / chosen.all[package], 3))


if __name__ == "__main__":
    sys.exit(main())
