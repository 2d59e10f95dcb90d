"""What selects a mesh if nobody says it: the environment, and `asya.toml`. The command and programs share it."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from asya.client.errors import MeshError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILE_NAME = "asya.toml"
OPTIONS = ("state", "namespace", "region", "profile")
_EXCLUDED = {"state": ("namespace", "region", "profile"), "namespace": ("state",)}
"""The options that a given one makes meaningless, because they select another mesh."""


def read_defaults(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Return the defaults for a command line.

    An option on the command line counts before a variable (`ASYA_STATE`), and a variable before the file.

    Args:
        arguments: The command line.
        environment: The environment variables.
        folder: The folder in which the file is searched, and then in those above.

    Raises:
        MeshError: The file has a mistake, or a source selects two meshes.
    """
    typed = {name for name in OPTIONS if any(each.partition("=")[0] == f"--{name}" for each in arguments)}
    variables = {name: environment[key] for name in OPTIONS if (key := f"ASYA_{name.upper()}") in environment}
    sources = (("the environment", variables), (FILE_NAME, _read_file(folder)))
    defaults: dict[str, str] = {}
    chosen = set(typed)
    for source, values in sources:
        selecting = [name for name in _EXCLUDED if values.get(name)]
        if len(selecting) > 1:
            raise MeshError(f"{source} selects two meshes: by {' and by '.join(selecting)}", "Remove one of them.")
        excluded = {other for name in chosen for other in _EXCLUDED.get(name, ())}
        taken = {name: value for name, value in values.items() if value and name not in chosen | excluded}
        defaults |= taken
        chosen |= taken.keys()
    return defaults


def _read_file(folder: Path) -> dict[str, str]:
    path = next((each / FILE_NAME for each in (folder, *folder.parents) if (each / FILE_NAME).is_file()), None)
    if path is None:
        return {}
    try:
        content = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise MeshError(f"{path} cannot be read: {error}", 'Write lines such as namespace = "shop-prod".') from error
    wrong = [name for name, value in content.items() if name not in OPTIONS or not isinstance(value, str)]
    if wrong:
        raise MeshError(
            f"{path}: {', '.join(wrong)}: not a default of the command",
            f"The file may have the texts {', '.join(OPTIONS)}.",
        )
    values: dict[str, str] = dict(content)
    if "state" in values:
        values["state"] = os.path.relpath(path.parent / values["state"], folder)
    return values
