"""Saves MiniStack's state to a file, and restores it in a new process.

MiniStack has the state of each service as JSON, without the objects of buckets. The values of secrets stay out of the file:
`up` stores them anew.

Runs in MiniStack's process, in `.venv-cloud`. It imports nothing of this project.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

RESTORE_VARIABLE = "ASYA_LOCAL_RESTORE"
"""Not empty in MiniStack's environment if it starts with the saved state."""
FILE_NAME = "state.json"
_OBJECTS = "s3 objects"
_SECRETS = "secretsmanager"


class SnapshotError(ValueError):
    """A file is no snapshot of this version of MiniStack."""


def save(folder: Path, front: ModuleType, persistence: ModuleType, s3: ModuleType) -> None:
    """Write the state of all services that were used, atomically.

    Raises:
        TypeError: JSON cannot hold a state.
    """
    states = {name: state for name, get in _savers(front).items() if name != _SECRETS and (state := get()) is not None}
    if "ssm" in states:
        states["ssm"] = _without_secrets(states["ssm"])
    objects = type(s3._buckets)()
    objects._data = {key: bucket["objects"] for key, bucket in s3._buckets._data.items()}
    content = {"version": _version(persistence, states), "states": states, _OBJECTS: objects}
    folder.mkdir(exist_ok=True)
    draft = folder / f"{FILE_NAME}.draft"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file, default=persistence._json_default)
    draft.replace(folder / FILE_NAME)


def restore(folder: Path, front: ModuleType, persistence: ModuleType, s3: ModuleType) -> None:
    """Give all services the saved state.

    Raises:
        SnapshotError: another version of MiniStack wrote the file.
        OSError, ValueError: the file is missing or broken.
    """
    with (folder / FILE_NAME).open() as file:
        content = json.load(file, object_hook=persistence._json_object_hook)
    states = content["states"]
    if content["version"] != _version(persistence, states):
        raise SnapshotError(f"{folder / FILE_NAME} is of another version of MiniStack")
    for name, state in states.items():
        front._get_module(front._state_map[name]).load_persisted_state(state)
    for key, objects in content[_OBJECTS]._data.items():
        s3._buckets._data[key]["objects"] = objects


def _savers(front: ModuleType) -> Mapping[str, Callable[[], Any]]:
    savers: Mapping[str, Callable[[], Any]] = front._build_persistence_save_dict()
    return savers


def _version(persistence: ModuleType, states: Mapping[str, Any]) -> dict[str, int]:
    return {name: persistence._state_format_version(name) for name in states}


def _without_secrets(state: Any) -> Any:
    """Return the state of the Parameter Store without secure strings."""
    for name in ("parameters", "parameter_history"):
        store = state[name]._data
        for key, value in list(store.items()):
            versions = value if isinstance(value, list) else [value]
            if any(version["Type"] == "SecureString" for version in versions):
                del store[key]
    return state
