"""`local.json`: all that a program needs to talk to a local cloud."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class LocalConnection:
    """Where a local cloud answers, what is in it, and the key of its operator (never root's)."""

    endpoint_url: str
    emr_endpoint_url: str
    gateway_url: str
    region: str
    access_key: str
    secret_key: str
    namespace: str
    results_bucket: str
    results_prefix: str
    data_bucket: str
    data_prefix: str
    tasks_table: str
    mesh: str
    """The mesh file that is deployed."""
    auth: bool
    """Whether IAM is enforced."""
    jwt_gateway_url: str | None = None
    """Where people with a token call; None if the mesh takes none."""

    def write(self, path: Path) -> None:
        """Write the file, readable by its owner only, whole or not at all."""
        draft = path.with_suffix(".draft")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(asdict(self), file, indent=2)
            file.write("\n")
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> LocalConnection | None:
        """What the file says; None when there is none that this version wrote."""
        try:
            return cls(**json.loads(path.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None


def bucket_and_prefix(uri: str) -> tuple[str, str]:
    """`s3://bucket/prefix/` taken apart; the prefix is empty or ends with a slash."""
    parts = urlsplit(uri)
    prefix = parts.path.lstrip("/")
    return parts.netloc, prefix if not prefix or prefix.endswith("/") else prefix + "/"
