"""Ends what runs in a state folder, and removes what has no meaning without it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from asya_local.processes import end_all

if TYPE_CHECKING:
    from asya_local.state_folder import StateFolder


def clean_up(folder: StateFolder) -> int:
    """Stop all processes of the folder, also after a crash, and remove their files; return the number of processes.

    Logs, keys, the snapshot and foreign files stay.
    """
    count = end_all(folder)
    for path in (folder.connection, folder.deployed, folder.processes, folder.outputs, folder.dev):
        path.unlink(missing_ok=True)
    for path in (folder.temporary, folder.ministack, folder.cdk_home, folder.emr / "drivers"):
        shutil.rmtree(path, ignore_errors=True)
    return count
