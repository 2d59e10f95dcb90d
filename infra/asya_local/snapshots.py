"""The saved state of a cloud after its first deployment: the next cloud of the folder starts with it, instead of a deployment."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from asya_local.account.keys import read_secret
from asya_local.authentication.admission import SECRET_HEADER, SNAPSHOT_PATH
from asya_local.connection import LocalConnection
from asya_local.errors import LocalCloudError
from asya_local.servers import LOOPBACK_OPENER
from asya_local.sources import Sources
from asya_local.state_folder import write_private

if TYPE_CHECKING:
    from pathlib import Path

    from asya_local.servers import Servers
    from asya_local.state_folder import StateFolder

_SECONDS = 60


@dataclass(frozen=True)
class Snapshot:
    """A saved state.

    Attributes:
        sources: the hashes of the deployed sources.
        connection: the content of `local.json`.
    """

    sources: Sources
    connection: LocalConnection

    @classmethod
    def read(cls, folder: StateFolder) -> Snapshot | None:
        """Return the snapshot of a folder; None if there is none, or if another version wrote it."""
        try:
            content = json.loads(_record(folder).read_text())
            return cls(Sources(**content["sources"]), LocalConnection(**content["connection"]))
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            return None

    def fits(self, sources: Sources, servers: Servers | None) -> bool:
        """Whether a cloud with these sources may start with it; other code of handlers and jobs is replaced afterwards."""
        is_same_address = servers is not None and servers.endpoint == self.connection.endpoint_url
        return is_same_address and sources.templates == self.sources.templates


def take_snapshot(folder: StateFolder, servers: Servers, snapshot: Snapshot) -> None:
    """Save the state of a running cloud.

    Raises:
        LocalCloudError: MiniStack cannot save it.
    """
    request = urllib.request.Request(
        servers.endpoint + SNAPSHOT_PATH, method="POST", headers={SECRET_HEADER: read_secret(folder.secret)}
    )
    try:
        with LOOPBACK_OPENER.open(request, timeout=_SECONDS):
            pass
    except (urllib.error.URLError, TimeoutError) as error:
        raise LocalCloudError(
            f"the state of the cloud cannot be saved ({error}); see {folder.logs / 'ministack.log'}"
        ) from error
    # The record makes the snapshot valid, so it comes last.
    write_private(_record(folder), json.dumps(asdict(snapshot)))


def discard_snapshot(folder: StateFolder) -> None:
    """Remove the snapshot of a folder."""
    shutil.rmtree(folder.snapshot, ignore_errors=True)


def _record(folder: StateFolder) -> Path:
    return folder.snapshot / "made-of.json"
