"""Which files of a folder of code are deployed: links, hidden files, data, and what is said about the others."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from asya_infra.build import code_files as module
from asya_infra.build.code_files import CodeFilesError, code_files, deployable, described
from asya_infra.build.folder import copy_sources, digest
from tests.unit.asya_infra.build.code_folders import FILE, FOLDER, LINK, Entry, entries, make

GENERATED = settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def tree(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(content)
    return folder


def reasons(folder: Path) -> dict[str, str]:
    found = code_files(folder)
    return {each.path: each.reason for each in (*found.left_out, *found.problems)}


def walked(folder: Path) -> set[str]:
    """Each path of a folder as a program sees it, but for what is below a folder again."""
    found: set[str] = set()

    def enter(at: Path, above: tuple[str, ...]) -> None:
        for entry in os.scandir(at):
            found.add(str(Path(entry.path).relative_to(folder)))
            real = os.path.realpath(entry.path)
            if os.path.isdir(entry.path) and real not in above:
                enter(Path(entry.path), (*above, real))

    enter(folder, (os.path.realpath(folder),))
    return found


@pytest.mark.rule("6.code")
@GENERATED
@given(entries())
def test_each_file_is_deployed_or_said_to_be_left_out(
    tmp_path_factory: pytest.TempPathFactory, made: list[Entry]
) -> None:
    code = make(tmp_path_factory.mktemp("made"), made)
    found = code_files(code)
    said = {each.path for each in (*found.left_out, *found.problems)}
    for path in walked(code):
        is_said = any(f"{path}/".startswith(f"{each}/") for each in said)
        is_of_tools = not module._OF_TOOLS.isdisjoint(path.split("/"))
        if not os.path.isdir(code / path) or not os.listdir(code / path):
            assert path in found.targets or is_said or is_of_tools, path
        assert not (path in found.targets and (is_said or is_of_tools)), path


@pytest.mark.rule("6.code")
@GENERATED
@given(entries((FILE, FILE, FOLDER, LINK)))
def test_a_copy_has_the_listed_files_with_their_content_and_no_link(
    tmp_path_factory: pytest.TempPathFactory, made: list[Entry]
) -> None:
    folder = tmp_path_factory.mktemp("made")
    code, copy = make(folder, made), folder / "copy"
    found = code_files(code)
    copy.mkdir()
    copy_sources(code, copy)
    copied = {str(path.relative_to(copy)): path for path in copy.rglob("*") if not path.is_dir()}
    assert copied.keys() == found.targets
    for name, path in copied.items():
        assert not path.is_symlink()
        assert path.read_bytes() == (code / name).read_bytes()
        assert os.access(path, os.X_OK) == bool((code / name).stat().st_mode & 0o100)
    # The copy is what its own copy would be, so nothing depends on where a folder came from.
    assert code_files(copy).targets == found.targets
    assert digest([copy]) == digest([code])


@pytest.mark.rule("6.code")
def test_links_are_followed_inside_and_outside_of_the_folder(tmp_path: Path) -> None:
    tree(tmp_path / "shared" / "common", **{"__init__.py": "", "rates.csv": "1"})
    code = tree(tmp_path / "code", **{"orders.py": ""})
    (code / "common").symlink_to("../shared/common")
    (code / "again").symlink_to("common")
    (code / "rates.csv").symlink_to(tmp_path / "shared" / "common" / "rates.csv")
    found = code_files(code)
    assert found.targets == {
        *("orders.py", "rates.csv", "common/__init__.py", "common/rates.csv", "again/__init__.py", "again/rates.csv")
    }
    assert (found.left_out, found.problems) == ((), ())


def test_a_change_behind_a_link_changes_the_hash(tmp_path: Path) -> None:
    tree(tmp_path / "shared", **{"rates.csv": "1"})
    code = tree(tmp_path / "code")
    (code / "common").symlink_to("../shared")
    before = digest([code])
    (tmp_path / "shared" / "rates.csv").write_text("2")
    changed = digest([code])
    assert changed != before
    (tmp_path / "shared" / "rates.csv").chmod(0o755)
    assert digest([code]) != changed


@pytest.mark.rule("6.code.refused")
def test_links_that_lead_nowhere_are_refused_by_name(tmp_path: Path) -> None:
    code = tree(tmp_path / "code")
    (code / "rates.csv").symlink_to("../gone.csv")
    (code / "self").symlink_to("self")
    found = code_files(code)
    assert {each.path: each.reason for each in found.problems} == {
        "rates.csv": "is a link to ../gone.csv, which does not exist; mend or remove it",
        "self": "is a link that leads to itself; remove it",
    }
    with pytest.raises(CodeFilesError, match=r"(?s)code/rates\.csv.*\.\./gone\.csv.*code/self"):
        deployable(code)
    # An editor's locks are broken links, with hidden names.
    (code / ".#orders.py").symlink_to("me@host.1")
    assert len(code_files(code).problems) == 2


def test_circular_links_end(tmp_path: Path) -> None:
    code = tree(tmp_path / "code" / "a", **{"x.py": ""}).parent
    (code / "a" / "up").symlink_to("..")
    (code / "a" / "here").symlink_to(".")
    assert code_files(code).targets == {"a/x.py"}
    assert set(reasons(code)) == {"a/up", "a/here"}
    assert all("a folder that contains it" in reason for reason in reasons(code).values())


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (".env", "set them with `env`, and secrets with `secrets`"),
        (".config.json", "give it a name without one, or a link to it"),
    ],
)
def test_a_hidden_file_is_left_out_and_may_come_in_by_a_link(tmp_path: Path, name: str, reason: str) -> None:
    code = tree(tmp_path / "code", **{name: "x"})
    [text] = described(code_files(code))
    assert text.startswith(f"{code / name}: is not deployed: ")
    assert reason in text
    (code / "settings").symlink_to(name)
    assert code_files(code).targets == {"settings"}


def test_environments_packages_of_node_empty_folders_and_sockets_are_left_out_and_said(tmp_path: Path) -> None:
    code = tree(tmp_path / "code")
    tree(code / "venv", **{"pyvenv.cfg": "", "x.py": ""})
    tree(code / "node_modules" / "y", **{"y.js": ""})
    tree(code / "out", **{".gitkeep": ""})
    tree(code / "tests", **{"test_mine.py": ""})
    tree(code / "names" / "pace", **{"x.py": ""})
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(code)
        server.bind("s")
        found = code_files(code)
    assert found.targets == {"tests/test_mine.py", "names/pace/x.py"}
    assert {each.path for each in found.left_out} == {"venv", "node_modules", "out", "s"}


def test_names_that_archives_do_not_have_are_refused(tmp_path: Path) -> None:
    code = tree(tmp_path / "code")
    (code / "a\\b.txt").touch()
    with open(os.fsencode(code) + b"/\xff.txt", "wb"):
        pass
    assert sorted(each.path for each in code_files(code).problems) == ["'\\udcff.txt'", "'a\\\\b.txt'"]


def test_a_link_to_a_huge_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FILES", 3)
    code = tree(tmp_path / "code", **dict.fromkeys("abcde", ""))
    assert code_files(code).problems == (
        module.NotDeployed("d", "is one file too many: a folder of code has at most 3; does a link lead elsewhere?"),
    )


def test_the_reason_of_a_file_that_is_not_deployed(tmp_path: Path) -> None:
    code = tree(tmp_path / "code", **{"x.py": ""})
    tree(code / "node_modules" / "y", **{"y.py": ""})
    found = code_files(code)
    assert found.why_left_out("x.py") is None
    assert "packages of Node" in str(found.why_left_out("node_modules/y/y.py"))
    assert found.why_left_out("__pycache__/x.pyc") == "only tools read it"
