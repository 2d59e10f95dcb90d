"""Builds the packages that a folder of user code requires, without its code."""

from pathlib import Path

from asya_infra.build.folder import build_once, source_files
from asya_infra.build.packages import REQUIREMENTS, Target, hashed_key, install_required, names_packages


def build_folder_packages(root: Path, folder: Path, target: Target, *, hashed: bool = False) -> Path | None:
    """Return a folder with the packages of the folder's `requirements.txt`; None without any.

    Args:
        root: the folder for builds.
        folder: the folder of user code. Its file may name further files beside it, so a change of any file but Python code
            builds again.
        target: the interpreter that imports the packages.
        hashed: refuse required packages without hashes.

    Raises:
        PackagesError: a required package cannot be installed.
    """
    if not names_packages(folder / REQUIREMENTS):
        return None

    def build(draft: Path) -> None:
        install_required(folder, draft, target, hashed=hashed)

    key: list[str | bytes | Path] = [
        "folder-packages",
        target.key(),
        *package_inputs(folder),
        *hashed_key(hashed=hashed),
    ]
    return build_once(root, "folder-packages", key, build)


def package_inputs(folder: Path) -> list[Path]:
    """Return the files that the packages of a folder may depend on: `requirements.txt` may name any of them."""
    return [path for path in source_files(folder) if path.suffix != ".py"]
