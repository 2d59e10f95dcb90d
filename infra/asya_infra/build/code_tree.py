"""Gives the modes of this machine what a deployment holds of a folder of code, and its import path.

The code is a copy, and the path has the packages for an interpreter of this machine.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from asya_infra.build.functions import build_handlers, build_layer, build_runtime
from asya_infra.build.jobs import build_user_jobs
from asya_infra.build.packages import Target
from asya_infra.product.places import BUILD

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


WITHOUT_AWS = {
    "AWS_ACCESS_KEY_ID": "not-known",
    "AWS_SECRET_ACCESS_KEY": "not-known",
    "AWS_SESSION_TOKEN": "not-known",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}
"""The variables of AWS for user code that a check imports: it gets no credentials of the author, also not from a file."""
NO_SECRET = "not-known"
"""The value of a secret, while code is imported."""


@dataclass(frozen=True)
class ImportPath:
    """What a function imports from.

    Attributes:
        tree: its package.
        after: what comes after it on the path: the layer, and the packages of Lambda's runtime.
    """

    tree: CodeTree
    after: tuple[Path, ...]

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders in the order in which modules are looked for."""
        return self.tree.content, *self.after


def function_path(
    root: Path, target: Target, code: Path, table: bytes | None = None, *, hashed: bool = False
) -> ImportPath:
    """Build what the functions of light actors import from.

    Args:
        root: the folder for builds of the user's code.
        target: the interpreter.
        code: the folder of handlers.
        table: the actor table; None for code that does not look for it.
        hashed: refuse required packages without hashes.

    Raises:
        PackagesError: a required package cannot be installed.
        CodeFilesError: a file cannot be deployed.
    """
    tree = handler_tree(root, target, code, table, hashed=hashed)
    return ImportPath(tree, (build_layer(BUILD, target) / "python", build_runtime(BUILD, target)))
