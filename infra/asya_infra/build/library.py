"""The part of the library that functions and job runs take along: all but the test kit and the client."""

from collections.abc import Iterator
from pathlib import Path

from asya_infra.build.folder import copy_sources, source_files
from asya_infra.product.places import LIBRARY

_ON_THIS_MACHINE_ONLY = frozenset({"client", "testing"})


def library_inputs() -> Iterator[str | Path]:
    """The names and contents that a build with the library depends on."""
    for part in _parts():
        yield from (part.name, part)


def copy_library(target: Path) -> None:
    """Copy the library into a folder, as the package `asya`."""
    for part in _parts():
        destination = target / "asya" / part.name
        if part.is_dir():
            copy_sources(part, destination)
        else:
            destination.parent.mkdir(parents=True, exist_ok=True)
            destination.write_bytes(part.read_bytes())


def _parts() -> list[Path]:
    inside = {LIBRARY / file.relative_to(LIBRARY).parts[0] for file in source_files(LIBRARY)}
    return sorted(part for part in inside if part.name not in _ON_THIS_MACHINE_ONLY)
