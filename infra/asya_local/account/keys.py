"""The access keys of a local cloud: random, and the same in each cloud of a state folder."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from asya_local.state_folder import write_private

if TYPE_CHECKING:
    from pathlib import Path

ACCOUNT_ID = "000000000000"
REGION = "us-east-1"


@dataclass(frozen=True)
class AccessKey:
    """An AWS access key."""

    access_key: str
    secret_key: str

    def environment(self) -> dict[str, str]:
        """Return the key as environment variables of the AWS SDKs."""
        return {"AWS_ACCESS_KEY_ID": self.access_key, "AWS_SECRET_ACCESS_KEY": self.secret_key}


def root_key(path: Path) -> AccessKey:
    """Return the key of MiniStack's root user, who may do everything in this local cloud: that of the file, or a random one."""
    return read_keys(path)["root"] if path.exists() else new_root_key()


def new_root_key() -> AccessKey:
    """Make a random key for MiniStack's root user."""
    return AccessKey("AKIA" + secrets.token_hex(8).upper(), secrets.token_hex(20))


def write_keys(path: Path, keys: dict[str, AccessKey]) -> None:
    """Write the keys to a file with mode 600."""
    write_private(path, json.dumps({name: asdict(key) for name, key in keys.items()}, indent=2))


def read_keys(path: Path) -> dict[str, AccessKey]:
    """Read the keys.

    Raises:
        FileNotFoundError: The cloud is not up.
    """
    return {name: AccessKey(**key) for name, key in json.loads(path.read_text()).items()}


def keep_secret(path: Path) -> None:
    """Make the random secret of a cloud, and write it to a file with mode 600, unless the file is there."""
    if not read_secret(path):
        write_private(path, secrets.token_hex(32))


def read_secret(path: Path) -> str:
    """Return the secret of a cloud; empty if no cloud was up yet."""
    return path.read_text() if path.exists() else ""
