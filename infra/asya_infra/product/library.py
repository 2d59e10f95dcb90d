"""What the processes of other environments have on their path to import this product."""

from pathlib import Path

from asya_infra.build.folder import build_once
from asya_infra.product.places import BUILD, INFRA, IS_INSTALLED, JOB_LIBRARY, LIBRARY

_PACKAGES = (LIBRARY, JOB_LIBRARY, INFRA)


def library_path() -> list[Path]:
    """Return folders with the packages `asya`, `asya_spark` and `asya_infra`.

    The folder of an installed package has more than its own packages: those of the author. So it is not taken itself.
    """
    if not IS_INSTALLED:
        return sorted({package.parent for package in _PACKAGES})

    def link(folder: Path) -> None:
        for package in _PACKAGES:
            (folder / package.name).symlink_to(package)

    return [build_once(BUILD, "library-links", [str(package) for package in _PACKAGES], link)]
