"""Makes an installation the same on every machine: removes what names this one, and nothing that code may import.

A package may import its own tests (`numpy.testing` does), read its data and list its files (`importlib.metadata.files`). So all of
that stays, and each `RECORD` lists exactly the files that are there.
"""

import csv
import re
import shutil
from pathlib import Path

_COMPILED = "__pycache__"
_RECORD = "RECORD"
# They name folders, times and versions of the machine that installed. Metadata about packages are the other files.
_NAMES_THIS_MACHINE = frozenset({"direct_url.json", "uv_cache.json", "uv_build.json"})
# The first line of a script names the interpreter that installed; for a long path, the second line does.
_OWN_INTERPRETER = re.compile(rb"#!(?:/[^\n]*/python[^/\n]*\n|/bin/sh\n'''exec' \"?/)")
_LONGEST_START = 4096


def normalize(folder: Path) -> None:
    """Normalize what uv has installed into a folder.

    Files may be links into the cache of uv, so none is written in place.
    """
    for compiled in sorted(folder.rglob(_COMPILED)):
        shutil.rmtree(compiled)
    for metadata in sorted(folder.glob("*.dist-info")):
        for name in _NAMES_THIS_MACHINE:
            (metadata / name).unlink(missing_ok=True)
    _remove_scripts(folder / "bin")
    (folder / ".lock").unlink(missing_ok=True)
    for metadata in sorted(folder.glob("*.dist-info")):
        _list_present_files(metadata / _RECORD, folder)


def _remove_scripts(folder: Path) -> None:
    """Remove the scripts that start by an interpreter of this machine; programs and the modules of a package `bin` stay."""
    if not folder.is_dir() or (folder / "__init__.py").exists():
        return
    for file in sorted(folder.iterdir()):
        if file.is_file():
            with file.open("rb") as content:
                start = content.read(_LONGEST_START)
            if _OWN_INTERPRETER.match(start):
                file.unlink()
    if not any(folder.iterdir()):
        folder.rmdir()


def _list_present_files(record: Path, folder: Path) -> None:
    if not record.is_file():
        return
    with record.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    present = sorted(row for row in rows if row and (folder / row[0]).exists())
    record.unlink()
    with record.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(present)
