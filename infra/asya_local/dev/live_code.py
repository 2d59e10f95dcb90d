"""The code of the handlers of `asya dev`: what their function has of it, always as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya_infra.build.code_tree import CodeTree, handler_tree
from asya_infra.build.packages import Target
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for
from asya_infra.product.places import BUILD

if TYPE_CHECKING:
    from pathlib import Path

    from asya_infra.mesh_file import LoadedMesh


@dataclass
class LiveCode:
    """The tree of the handlers, with their packages and the actor table.

    Attributes:
        root: a link to the newest tree. Each new process of handlers imports from there.
    """

    root: Path
    _tree: CodeTree | None = None

    def update(self, loaded: LoadedMesh, table: bytes) -> None:
        """Let new processes have the code and the packages as they are now.

        Raises:
            PackagesError: A required package cannot be installed.
        """
        target, hashed = Target(interpreter=interpreter_for(FUNCTION_PYTHON).path), loaded.mesh.requires_hashes
        self._tree = handler_tree(BUILD, target, loaded.code_folder, table, hashed=hashed)
        draft = self.root.with_suffix(".draft")
        draft.unlink(missing_ok=True)
        draft.symlink_to(self._tree.content)
        draft.replace(self.root)

    def as_written(self, text: str) -> str:
        """Return a text with the paths of the author's own files."""
        if self._tree is None:
            return text
        return CodeTree(self._tree.folder, self.root).as_written(self._tree.as_written(text))
