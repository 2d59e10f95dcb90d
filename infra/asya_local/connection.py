"""`local.json`: the addresses, names and key that a program needs to use a local cloud."""

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
    """The content of `local.json`: endpoints, resource names and the operator's key."""

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
    """Path of the deployed mesh file."""
    auth: bool
    """Whether IAM is enforced."""
    jwt_gateway_url: str | None = None
    """The gateway for callers with tokens; None if the mesh accepts no tokens."""

    def write(self, path: Path) -> None:
        """Write the file atomically, with mode 600."""
        draft = path.with_suffix(".draft")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(asdict(self), file, indent=2)
            file.write("\n")
        draft.replace(path)

    @classmethod
    def read(cls, path: Path) -> LocalConnection | None:
        """Read the file; return None if it is missing, or if another version wrote it."""
        try:
            return cls(**json.loads(path.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None


def bucket_and_prefix(uri: str) -> tuple[str, str]:
    """Split `s3://bucket/prefix/`; the prefix is empty or ends with a slash."""
    parts = urlsplit(uri)
    prefix = parts.path.lstrip("/")
    return parts.netloc, prefix if not prefix or prefix.endswith("/") else prefix + "/"
