"""Checks out the files of a git revision elsewhere, and leaves the repository as it is."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from asya_cli.errors import CommandError


@dataclass(frozen=True)
class Revision:
    """A revision of the repository of a mesh file.

    Attributes:
        repository: The top folder of the work tree.
        commit: The full name of the commit.
        file: The path of the mesh file in the repository.
    """

    repository: Path
    commit: str
    file: Path

    @classmethod
    def find(cls, mesh: Path, name: str) -> Revision:
        """Find a revision.

        Raises:
            CommandError: The mesh file is in no repository, or the repository has no such revision.
        """
        path = mesh.resolve()
        top = _git(path.parent, "rev-parse", "--show-toplevel")
        if top is None:
            raise CommandError(
                f"{name!r} is no folder with {mesh.name}, and {mesh} is in no git repository",
                "Name a folder with the earlier mesh file.",
            )
        commit = _git(path.parent, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        if commit is None:
            raise CommandError(
                f"{name!r} is neither a folder with {mesh.name} nor a revision of {top}",
                "In CI fetch it first, such as by `git fetch origin main`, and compare with origin/main.",
            )
        repository = Path(top).resolve()
        return cls(repository, commit, path.relative_to(repository))

    def check_out(self, folder: Path) -> Path:
        """Write the files of the revision to an empty folder; return the path of the mesh file there.

        Unlike `git archive` this also writes files with the attribute `export-ignore`.

        Raises:
            CommandError: A file cannot be written.
        """
        # An index of its own: that of the work tree may have changes.
        index = {"GIT_INDEX_FILE": str(folder / ".index")}
        prefix = f"--prefix={folder}{os.sep}"
        for arguments in (("read-tree", self.commit), ("checkout-index", "--all", prefix)):
            if _git(self.repository, *arguments, **index) is None:
                raise CommandError(f"git cannot write the files of {self.commit} to {folder}")
        return folder / self.file


def _git(folder: Path, *arguments: str, **variables: str) -> str | None:
    """Run git in a folder; return its answer, or None if it fails."""
    try:
        result = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandError("git is not installed", "Name a folder with the earlier mesh file.") from error
    return result.stdout.strip() if result.returncode == 0 else None
