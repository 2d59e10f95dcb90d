"""Files are written all or none."""

from pathlib import Path

import pytest

from asya_cli.scaffold.files import draft_of, make_folder, new_files


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_folder_appears_with_all_its_files(tmp_path: Path) -> None:
    make_folder(tmp_path / "shop", {"a.txt": "a", "b/c.txt": "ø"})
    assert names(tmp_path) == ["shop", "shop/a.txt", "shop/b", "shop/b/c.txt"]
    assert (tmp_path / "shop/b/c.txt").read_text(encoding="utf-8") == "ø"
    assert (tmp_path / "shop").stat().st_mode & 0o777 == (tmp_path / "shop/b").stat().st_mode & 0o777


def test_a_folder_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="name too long"):
        make_folder(tmp_path / "shop", {"a.txt": "a", "b" * 300: "b"})
    assert names(tmp_path) == []


def test_a_folder_with_files_is_kept(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/mine.txt").write_text("mine")
    with pytest.raises(OSError, match="not empty"):
        make_folder(tmp_path / "shop", {"a.txt": "a"})
    assert names(tmp_path) == ["shop", "shop/mine.txt"]


def test_new_files_go_again_if_what_follows_fails(tmp_path: Path) -> None:
    def interrupt() -> None:
        with new_files({tmp_path / "a/b/c.txt": "c", tmp_path / "d.txt": "d"}):
            assert names(tmp_path) == ["a", "a/b", "a/b/c.txt", "d.txt"]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert names(tmp_path) == []


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("mine")
    with pytest.raises(FileExistsError), new_files({tmp_path / "a.txt": "a", tmp_path / "b.txt": "b"}):
        pass
    assert names(tmp_path) == ["b.txt"]
    assert (tmp_path / "b.txt").read_text() == "mine"


def test_a_draft_replaces_its_file_at_the_end(tmp_path: Path) -> None:
    mesh, link = tmp_path / "mesh.yaml", tmp_path / "link.yaml"
    mesh.write_text("old")
    mesh.chmod(0o640)
    link.symlink_to(mesh)
    with draft_of(link, "new") as draft:
        assert (mesh.read_text(), draft.read_text()) == ("old", "new")
    assert (mesh.read_text(), mesh.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o640, True)


def test_a_draft_goes_if_the_block_raises(tmp_path: Path) -> None:
    (tmp_path / "mesh.yaml").write_text("old")
    with pytest.raises(ValueError, match="wrong"), draft_of(tmp_path / "mesh.yaml", "new"):
        raise ValueError("wrong")
    assert names(tmp_path) == ["mesh.yaml"]
    assert (tmp_path / "mesh.yaml").read_text() == "old"
