"""Puts the built page into the wheel. An editable install has none: there `asya ui` takes the page from `.build`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = ".build/console"
PLACE = "asya_cli/console/page"


class PageHook(BuildHookInterface[Any]):
    """Includes the page, and fails without one."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folder of the page to a wheel."""
        if version == "editable":
            return
        if not (Path(self.root) / PAGE / "index.html").exists():
            raise FileNotFoundError(
                f"{PAGE}/index.html does not exist: `make wheel` builds the page of the console first"
            )
        build_data["force_include"][PAGE] = PLACE
