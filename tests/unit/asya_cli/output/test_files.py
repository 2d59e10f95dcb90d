"""Files that a user names are written whole, and through no link of another user."""

import os
import stat
from pathlib import Path

import pytest

from asya_cli.output.files import whole_file


def test_a_file_is_replaced_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("old")
    file.chmod(0o640)
    with whole_file(file) as output:
        output.write(b"new")
        assert file.read_text() == "old"
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [file]


def test_after_an_error_it_is_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    with pytest.raises(KeyboardInterrupt), whole_file(file) as output:  # noqa: PT012 - the block ends by the error
        output.write(b"half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_has_the_mode_of_any_other(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        with whole_file(tmp_path / "a.txt"):
            pass
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize("plant", [os.symlink, os.link])
def test_a_link_with_its_name_is_replaced_and_not_followed(tmp_path: Path, plant: object) -> None:
    own = tmp_path / "own"
    own.write_text("keys")
    plant(own, tmp_path / "a.txt")
    with whole_file(tmp_path / "a.txt") as output:
        output.write(b"new")
    assert own.read_text() == "keys"
    assert not (tmp_path / "a.txt").is_symlink()


def test_devices_and_own_pipes_are_written_as_they_are(tmp_path: Path) -> None:
    with whole_file(Path("/dev/null")) as output:
        output.write(b"x")
    assert not Path("/dev/null").is_file()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with whole_file(pipe) as output:
        output.write(b"x")
    assert os.read(reader, 10) == b"x"
    os.close(reader)


def test_a_long_name_is_no_problem(tmp_path: Path) -> None:
    file = tmp_path / ("a" * 250)
    with whole_file(file) as output:
        output.write(b"x")
    assert file.read_bytes() == b"x"
