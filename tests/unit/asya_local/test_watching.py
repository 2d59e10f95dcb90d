"""`asya dev` sees each change of a mesh, and no other ones."""

from collections.abc import Callable
from pathlib import Path

import pytest

from asya_local.watching import identities, watching, with_linked_folders

MESH = "namespace: shop\ncode: handlers\nactors:\n  check: {handler: orders.check}\n"


@pytest.fixture
def mesh(tmp_path: Path) -> Path:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "orders.py").write_text("def check(payload):\n    return payload\n")
    (tmp_path / "mesh.yaml").write_text(MESH)
    return tmp_path / "mesh.yaml"


def replaced(mesh: Path) -> None:
    """What many editors do: write another file, and rename it."""
    draft = mesh.with_suffix(".draft")
    draft.write_text(MESH + "# changed\n")
    draft.replace(mesh)


def changed_handler(mesh: Path) -> None:
    (mesh.parent / "handlers" / "orders.py").write_text("")


def new_folder(mesh: Path) -> None:
    (mesh.parent / "handlers" / "shop").mkdir()


@pytest.mark.parametrize("change", [replaced, changed_handler, new_folder])
def test_a_change_ends_the_waiting(mesh: Path, change: Callable[[Path], None]) -> None:
    with watching(mesh, [mesh.parent / "handlers"]) as wait:
        change(mesh)
        assert wait(30)


@pytest.mark.parametrize("linked", ["shared/common", "shared/common/rates.json"])
def test_a_change_behind_a_link_ends_the_waiting(mesh: Path, linked: str) -> None:
    shared = mesh.parent / "shared" / "common"
    (shared / "deep").mkdir(parents=True)
    for file in (shared / "rates.json", shared / "deep" / "more.json"):
        file.touch()
    (mesh.parent / "handlers" / "linked").symlink_to(mesh.parent / linked)
    changed = shared / "deep" / "more.json" if linked == "shared/common" else shared / "rates.json"
    with watching(mesh, [mesh.parent / "handlers"]) as wait:
        changed.write_text("1")
        assert wait(30)


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("-r ../shared/req.txt", "shared/req.txt"),
        ("-c ../shared/req.txt", "shared/req.txt"),
        ("../shared/wheels/goods-1.0-py3-none-any.whl", "shared/wheels/goods-1.0-py3-none-any.whl"),
        ("--find-links ../shared/wheels", "shared/wheels/goods-2.0-py3-none-any.whl"),
        ("goods @ ../shared/project", "shared/project/goods/more.py"),
    ],
)
def test_a_change_of_what_packages_are_built_from_ends_the_waiting(mesh: Path, line: str, changed: str) -> None:
    for name in ("req.txt", "wheels/goods-1.0-py3-none-any.whl", "project/pyproject.toml", "project/goods/more.py"):
        file = mesh.parent / "shared" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    (mesh.parent / "handlers" / "requirements.txt").write_text(f"{line}\n")
    with watching(mesh, [mesh.parent / "handlers"]) as wait:
        (mesh.parent / changed).write_text("# changed\n")
        assert wait(30)


def test_a_new_link_leads_to_a_folder_that_has_to_be_watched(mesh: Path) -> None:
    folders = [mesh.parent / "handlers"]
    before = with_linked_folders(folders)
    shared = mesh.parent / "shared"
    shared.mkdir()
    (shared / "rates.json").touch()
    (mesh.parent / "handlers" / "linked").symlink_to(shared)
    assert set(with_linked_folders(folders)) - set(before) == {shared.resolve()}


def test_another_file_does_not_end_the_waiting(mesh: Path) -> None:
    with watching(mesh, [mesh.parent / "handlers"]) as wait:
        (mesh.parent / "notes.txt").write_text("not of the mesh")
        assert not wait(1)  # long enough for the file above to be seen
        changed_handler(mesh)
        assert wait(30)


def test_a_folder_that_is_made_again_is_another_one(tmp_path: Path) -> None:
    folder, kept = tmp_path / "handlers", tmp_path / "jobs"
    folder.mkdir()
    kept.mkdir()
    before = identities([folder, kept])
    folder.rename(tmp_path / "old")  # so that the new one cannot have its number
    assert identities([folder, kept]) == (None, before[1])
    folder.mkdir()
    after = identities([folder, kept])
    assert (after[0] != before[0], after[1]) == (True, before[1])
