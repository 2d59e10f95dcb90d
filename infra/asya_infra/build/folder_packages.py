"""Builds the packages that a folder of user code requires, without its code."""

from pathlib import Path

from asya_infra.build.folder import build_once
from asya_infra.build.installation_inputs import installation_inputs
from asya_infra.build.packages import REQUIREMENTS, Target, install_required, names_packages, packages_key


def build_folder_packages(root: Path, folder: Path, target: Target, *, hashed: bool = False) -> Path | None:
    """Return a folder with the packages of the folder's `requirements.txt`; None without any.

    Args:
        root: the folder for builds.
        folder: the folder of user code.
        target: the interpreter that imports the packages.
        hashed: refuse required packages without hashes.

    Raises:
        PackagesError: a required package cannot be installed.
    """
    requirements = folder / REQUIREMENTS
    if not names_packages(requirements):
        return None

    def build(draft: Path) -> None:
        install_required(folder, draft, target, hashed=hashed)

    return build_once(root, "folder-packages", packages_key(requirements, target, hashed=hashed), build)


def package_inputs(folder: Path) -> list[str | bytes | Path]:
    """Return what the packages of a folder depend on beside their target, as parts of a digest."""
    return [*installation_inputs(folder / REQUIREMENTS)]
