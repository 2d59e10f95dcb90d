"""Where the files of this product lie: in a checkout of its repository, or in an installed package."""

from importlib.util import find_spec
from pathlib import Path

INFRA = Path(__file__).resolve().parents[1]
"""The package `asya_infra`."""

_PACKAGED = INFRA / "files"

IS_INSTALLED = _PACKAGED.is_dir()
"""Whether this is an installed package, and no checkout."""


def _package(name: str) -> Path:
    spec = find_spec(name)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations))).resolve()


FILES = _PACKAGED if IS_INSTALLED else INFRA.parents[1]
"""The folder with `app.py`, `cdk.json`, `package.json`, `requirements/` and the example; the root of a checkout."""

LIBRARY = _package("asya")
"""The package `asya`, which every function takes along."""

JOB_LIBRARY = _package("asya_spark")
"""The package `asya_spark`, which every job run takes along."""


def _cache() -> Path:
    if not IS_INSTALLED:
        return FILES / ".build"
    from platformdirs import user_cache_path

    return user_cache_path("asya-mesh")


CACHE = _cache()
"""What can be made again: builds and environments. An installed package has it in the user's cache, a checkout in `.build`."""

BUILD = CACHE / "build" if IS_INSTALLED else CACHE
"""The folder of builds, each with the hash of its inputs in its name."""
