"""`local.json`: the addresses, names and key that a program needs to use a local cloud."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from asya_local.state_folder import write_private

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
    jwt_gateway_url: str | None = None
    """The gateway for callers with tokens; None if the mesh accepts no tokens."""

    def write(self, path: Path) -> None:
        """Write the file atomically, with mode 600."""
        write_private(path, json.dumps(asdict(self), indent=2) + "\n")

    def environment(self) -> dict[str, str]:
        """Return the environment variables by which AWS's tools and SDKs find the cloud, and programs the mesh."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_ENDPOINT_URL_EMR_SERVERLESS": self.emr_endpoint_url,
            "ASYA_GATEWAY_URL": self.gateway_url,
            "ASYA_DATA_URI": f"s3://{self.data_bucket}/{self.data_prefix}",
            "ASYA_RESULTS_URI": f"s3://{self.results_bucket}/{self.results_prefix}",
        }

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
