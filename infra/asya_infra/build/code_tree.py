"""Gives the modes of this machine what a deployment holds of a folder of code, as a copy apart from it.

Code may write beside itself, so no such copy is ever deployed.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from asya_infra.build.functions import build_handlers
from asya_infra.build.jobs import build_user_jobs
from asya_infra.build.packages import Target

LIVE = "live"
"""The folder of such copies, below that of builds."""


@dataclass(frozen=True)
class CodeTree:
    """A copy of what is deployed of a folder of code.

    Attributes:
        folder: the author's folder.
        content: the copy, where code is imported from.
    """

    folder: Path
    content: Path

    def as_written(self, text: str) -> str:
        """Return a text, such as a traceback, with the paths of the author's own files."""
        return re.sub(re.escape(f"{self.content}/") + r"""([^"'\\\n:]+)""", self._own, text)

    def _own(self, match: re.Match[str]) -> str:
        own = self.folder / match[1]
        return str(own) if own.exists() else match[0]


def handler_tree(
    root: Path, target: Target, code: Path, table: bytes | None = None, *, hashed: bool = False
) -> CodeTree:
    """Return the package of light actors, with the packages for an interpreter of this machine.

    Args:
        root: the folder for builds.
        target: the interpreter.
        code: the folder of handlers.
        table: the actor table; None for code that is only imported.
        hashed: refuse required packages without hashes.

    Raises:
        PackagesError: a required package cannot be installed.
        CodeFilesError: a file cannot be deployed.
    """
    return CodeTree(code.resolve(), build_handlers(root / LIVE, target, code, table, hashed=hashed))


def job_tree(root: Path, jobs: Path) -> CodeTree:
    """Return the files of jobs, as Spark unpacks them, without their packages.

    Raises:
        CodeFilesError: a file cannot be deployed.
    """
    return CodeTree(jobs.resolve(), build_user_jobs(root / LIVE, jobs))
