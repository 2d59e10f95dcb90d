"""Imports the functions of capabilities that the mesh file names, whose code lies in the folder of the handlers."""

from __future__ import annotations

import importlib
import sys
import traceback
from typing import TYPE_CHECKING

from asya_local.errors import LocalCloudError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType


class OwnCode:
    """The packages of these capabilities in this process.

    A change of the mesh imports them again. Their required packages are those of this process.

    Args:
        folder: The folder of the code, which comes after all other packages.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._tops: set[str] = set()

    def renew(self, entry_points: Sequence[str]) -> None:
        """Import these entry points as they are now.

        Raises:
            LocalCloudError: One cannot be imported; those from before stay.
        """
        self._tops |= {name.partition(".")[0] for name in entry_points}
        before = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] in self._tops}
        if entry_points and self._folder not in sys.path:
            sys.path.append(self._folder)
        importlib.invalidate_caches()
        try:
            for name in entry_points:
                # `pkgutil.resolve_name` would hide why a module cannot be imported.
                importlib.import_module(name.rpartition(".")[0])
        except (Exception, SystemExit) as error:
            sys.modules.update(before)
            text = "".join(traceback.format_exception(error.with_traceback(_own(error, self._folder))))
            raise LocalCloudError(f"a capability of the mesh cannot be loaded:\n{text.rstrip()}") from error


def _own(error: BaseException, folder: str) -> TracebackType | None:
    """Return the part of a traceback that begins in the folder; all of it if none does."""
    found = error.__traceback__
    while found is not None and not found.tb_frame.f_code.co_filename.startswith(folder):
        found = found.tb_next
    return found or error.__traceback__
