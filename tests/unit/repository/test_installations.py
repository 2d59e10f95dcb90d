"""Everything that installs code, in one list: pinned with hashes, wheels only, builds from pinned requirements.

A command that is not in the list fails, and so does an entry without a command.
"""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from asya_cli.scaffold.files import project_files
from asya_infra.product import environments
from asya_infra.product.environments import EnvironmentsError, Part
from tests.paths import PROJECT

WORKFLOW = "asya_cli/scaffold/templates/common/.github/workflows/mesh.yml"
HASHED = ("--require-hashes", "--only-binary :all:")
OPTIONS = ("--require-hashes", "requirements/options.txt", "--no-build-isolation", "--no-deps")
LOCKED = ("npm ci", "--ignore-scripts")

# File → what a line that installs has in it, for each such line. A word alone is a reason instead.
# own: the checkout itself, with the build backend of dev.txt. author: what a person types on a machine of theirs, which their
# index decides. prose: no command. uv: an interpreter, by the hash that uv has of it. apt: the signed archive of Debian.
INSTALLATIONS: dict[str, tuple[tuple[str, ...] | str, ...]] = {
    "Makefile": (OPTIONS, "apt", HASHED, "own", LOCKED, LOCKED, LOCKED, LOCKED),
    "CONTRIBUTING.md": ("author",),
    "README.md": ("author", "author"),
    "asya_cli/scaffold/templates/common/README.md": ("author",),
    WORKFLOW: (HASHED, (*HASHED, "--no-build-isolation", "--no-deps")) * 2,
    "docs/decisions/building-without-docker.md": ("author",),
    "docs/how-to/deploy-from-github.md": ((*HASHED, "--no-deps"),),
    "docs/how-to/port-a-pyspark-script.md": ("author",),
    "docs/security.md": ("author",),
    "docs/tutorial/first-mesh.md": ("author",) * 5,
    "functions/asya/testing/__init__.py": ("author",),
    # Packages of handlers and jobs: wheels only; with hashes if the mesh file says so, as the functions' own are (tests/infra).
    "infra/asya_infra/build/packages.py": (("--only-binary", ":all:", "--require-hashes"),),
    "infra/asya_infra/product/environments.py": (
        ("npm", "--ignore-scripts"),
        ("--require-hashes", "--no-deps", "--no-build-isolation", "source.options"),
    ),
    "infra/asya_infra/product/interpreters.py": ("author", "prose", "uv"),
    "scripts/find-java": ("apt", "author"),
}
INSTALLS = re.compile(
    r"""\b(?:pip3?|pipx|uv|uv\ tool|uv\ python|npm|apt-get|apt|brew|conda|cargo|gem|go)["',\s]+(?:-\S+\s+)*["']?
      (?:install|ci|sync|add|download|wheel)\b
    |["'](?:python|pip|npm)["']\)?,\s*["'](?:install|ci|sync|add|download|wheel)["']
    |\b(?:uvx|npx|corepack|wget)\s+[a-z-]|\bcurl\b.*\|\s*(?:ba)?sh|\buv\ (?:tool\ )?run\b|setup\.py\ (?:install|develop)""",
    re.VERBOSE,
)
# No installations: prose about them, the start of what is installed, and a message for the reader.
OTHERS = {"CHANGELOG.md", "infra/asya_infra/preflight/checks.py"}
SUFFIXES = {"", ".md", ".py", ".yml", ".yaml", ".toml", ".txt", ".in", ".sh", ".cfg", ".mjs"}


def texts() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        path = PROJECT / name
        if name and not name.startswith("tests/") and name not in OTHERS and path.suffix in SUFFIXES and path.is_file():
            yield name, path.read_text(encoding="utf-8")


def installing_lines(name: str, text: str) -> list[str]:
    """The lines that install; of Python with the lines around that make the options."""
    lines = text.splitlines()
    before, after = (1, 4) if name.endswith(".py") else (0, 1)
    found = [number for number, line in enumerate(lines) if INSTALLS.search(line)]
    return ["\n".join(lines[max(0, number - before) : number + after]) for number in found]


@pytest.mark.slow
def test_every_installation_is_in_the_list_and_pinned() -> None:
    found = {name: lines for name, text in texts() if (lines := installing_lines(name, text))}
    assert {name: len(lines) for name, lines in found.items()} == {
        name: len(entries) for name, entries in INSTALLATIONS.items()
    }
    for name, lines in found.items():
        for line, entry in zip(lines, INSTALLATIONS[name], strict=True):
            assert isinstance(entry, str) or all(part in line for part in entry), f"{name}: {line}"


@pytest.mark.parametrize(
    "line",
    [
        "pip install x", "python -m pip install -q x", "uv pip install x", "uv tool install x", "uvx x", "npx x", "npm install",
        '[uv, "pip", "install", x]', "uv sync", "pipx install x", "apt-get install -y x", "curl https://x | sh", "uv run x.py",
        '["npm", "ci"]', "uv add x", "pip download x", "pip wheel x", "python setup.py install", "brew install x",
    ],
)  # fmt: skip
def test_the_search_finds_the_ways_to_install(line: str) -> None:
    assert INSTALLS.search(line)


def test_every_pinned_package_is_a_wheel_or_built_by_what_is_pinned() -> None:
    """`options.txt` names the packages without a wheel; one hash is that of the archive."""
    requirements = PROJECT / "requirements"
    built = re.findall(r"^--no-binary (\S+)$", (requirements / "options.txt").read_text(), re.MULTILINE)
    assert ":all:" not in built
    text = "".join((requirements / f"{each.stem}.txt").read_text() for each in requirements.glob("*.in"))
    names = set(re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE))
    assert set(built) <= names
    pins = re.findall(r"^([A-Za-z0-9._-]+==[^ \n]+)[^\n]*\\\n((?:    --hash=.*\n)+)", text, re.MULTILINE)
    assert len(pins) == len(re.findall(r"^[A-Za-z0-9._-]+==", text, re.MULTILINE))
    assert re.findall(r"^(\S+)==", (requirements / "build.txt").read_text(), re.MULTILINE) == ["setuptools"]


@pytest.mark.parametrize(
    "name",
    [
        "package-lock.json",
        "console/package-lock.json",
        "requirements/docs/package-lock.json",
        "requirements/browser/package-lock.json",
    ],
)
def test_every_package_of_npm_has_its_hash(name: str) -> None:
    packages = json.loads((PROJECT / name).read_text())["packages"]
    without = [key for key, each in packages.items() if key and not each.get("link") and "integrity" not in each]
    bundled = [key for key in without if packages[key].get("inBundle")]
    assert without == bundled


KEPT = "const cache = require('node:module').enableCompileCache(); process.exit(cache.status === 3 ? 0 : 1)"
"""What npm does first; 3 stands for a cache that is off."""


def test_npm_loads_no_compiled_code_that_another_user_may_have_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of `node-compile-cache` in the temporary folder nobody checks the owner."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("NODE_DISABLE_COMPILE_CACHE", raising=False)
    node = str(PROJECT / ".venv/bin/node")
    environments._run(Part.CDK, [node, "-e", KEPT], tell=print)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(environments, "NODE_VARIABLES", {})
    with pytest.raises(EnvironmentsError):  # without the variable the cache is on
        environments._run(Part.CDK, [node, "-e", KEPT], tell=print)
    said = ["make", "--silent", "--eval", "said: ; @echo $$NODE_DISABLE_COMPILE_CACHE", "said"]
    assert subprocess.run(said, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.strip() == "1"


def workflows() -> dict[str, str]:
    page = (PROJECT / "docs" / "how-to" / "deploy-from-github.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    own = {path.name: path.read_text() for path in (PROJECT / ".github" / "workflows").iterdir()}
    return (
        own
        | {"scaffold": (PROJECT / WORKFLOW).read_text()}
        | {f"page {number}": text for number, text in enumerate(blocks)}
    )


@pytest.mark.parametrize("name", workflows())
def test_actions_are_pinned_by_commit(name: str) -> None:
    jobs = yaml.safe_load(workflows()[name])["jobs"]
    used = [step["uses"] for job in jobs.values() for step in job["steps"] if "uses" in step]
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []
    versions = Counter(re.findall(r"uses: (\S+) # v\d+\.\d+\.\d+", workflows()[name]))
    assert versions == Counter(used)


@pytest.mark.parametrize("template", ["light", "spark"])
def test_the_workflow_of_a_project_installs_hashes_only(template: str) -> None:
    files = project_files(template, "shop", "1.2.3")
    jobs = yaml.safe_load(files[".github/workflows/mesh.yml"])["jobs"]
    runs = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    installing = [run for run in runs if "install" in run]
    assert len(installing) == 4
    assert all("--require-hashes --only-binary :all:" in run for run in installing)
    assert "-r requirements-build.txt" in installing[0]
    assert "--no-binary pyspark --no-build-isolation --no-deps -r requirements-dev.lock" in installing[1]
    assert re.fullmatch(
        r"(?s)setuptools==\S+ \\\n(    --hash=sha256:[0-9a-f]{64}[^\n]*\n)+.*", files["requirements-build.txt"]
    )
    assert "-o requirements-dev.lock" in files["README.md"]


def test_the_paths_of_this_page_exist() -> None:
    assert [name for name in INSTALLATIONS if not Path(PROJECT, name).is_file()] == []
