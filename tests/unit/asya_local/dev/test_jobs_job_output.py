"""What jobs print in `asya dev`."""

from pathlib import Path

import pytest

from asya_local.dev import jobs
from asya_local.dev.jobs import JobOutput


def test_lines_are_shown_as_they_come(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []
    old, new = tmp_path / "001" / "stdout", tmp_path / "002" / "stdout"
    old.parent.mkdir()
    old.write_text("of the last mesh\n")
    output = JobOutput(tmp_path, lambda *entry: told.append(entry))
    new.parent.mkdir()
    new.write_bytes(b"one\ntwo\nhal")
    output.show()
    assert told == [("printed", "a job: one"), ("printed", "a job: two")]
    with new.open("ab") as file:
        file.write(b"f \xff\n")
    output.show()
    output.show()
    assert told[2:] == [("printed", "a job: half \ufffd")]
    assert old.parent.exists()


def test_a_long_output_comes_in_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_LONGEST", 8)
    told: list[str] = []
    output = JobOutput(tmp_path, lambda _, text: told.append(text))
    (tmp_path / "001").mkdir()
    (tmp_path / "001" / "stdout").write_text("one\ntwo é\n" + "x" * 20 + "\n")
    for _ in range(8):
        output.show()
    texts = [text.removeprefix("a job: ") for text in told]
    assert texts[:2] == ["one", "two é"]
    assert "".join(texts[2:]) == "x" * 20


def test_a_line_without_an_end_is_shown_when_it_does_not_grow(tmp_path: Path) -> None:
    told: list[str] = []
    output = JobOutput(tmp_path, lambda _, text: told.append(text))
    (tmp_path / "001").mkdir()
    (tmp_path / "001" / "stdout").write_text("rows: 4")
    output.show()
    (tmp_path / "001" / "stdout").write_text("rows: 42")
    output.show()
    assert told == []
    for _ in range(5):
        output.show()
    assert told == ["a job: rows: 42"]


def test_a_folder_that_does_not_exist_yet_has_no_output(tmp_path: Path) -> None:
    JobOutput(tmp_path / "emr", lambda *_: pytest.fail("nothing was printed")).show()
