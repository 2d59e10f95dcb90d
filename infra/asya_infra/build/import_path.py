"""Says what functions find on their path, with the packages for an interpreter of this machine."""

import os
from dataclasses import dataclass
from pathlib import Path

from asya_infra.build.code_tree import CodeTree, handler_tree
from asya_infra.build.functions import build_layer, build_runtime
from asya_infra.build.packages import Target
from asya_infra.product.places import BUILD

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
