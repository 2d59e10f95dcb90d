"""Imports the functions of capabilities that the mesh file names, whose code lies in the folder of the handlers."""

import importlib
import sys
from pathlib import Path


class OwnCode:
    """The packages of these capabilities in this process.

    A change of the mesh imports them again. Their required packages are those of this process.
    """

    def __init__(self) -> None:
        self._tops: set[str] = set()
        self._folder = ""

    def renew(self, folder: Path, packages: tuple[str, ...]) -> None:
        """Import from a folder from now on, after all other packages."""
        if self._folder in sys.path:
            sys.path.remove(self._folder)
        self._folder = str(folder)
        self._tops |= {package.partition(".")[0] for package in packages}
        for name in [name for name in sys.modules if name.partition(".")[0] in self._tops]:
            del sys.modules[name]
        if packages:
            sys.path.append(self._folder)
            importlib.invalidate_caches()
