"""Random credentials for functions.

MiniStack derives the credentials of a function from its ARN and the ARN of its role, which are no secrets. Here they are random,
made once for each function and role, and valid until MiniStack ends.

Runs in MiniStack's process, in `.venv-cloud`.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


class FunctionCredentials:
    """The credentials of the functions of one cloud.

    Args:
        register: Registers the session of an access key with MiniStack's STS.
    """

    def __init__(self, register: Callable[[str, dict[str, Any]], None]) -> None:
        self._register = register
        self._lock = threading.Lock()
        self._environments: dict[tuple[str, str], dict[str, str]] = {}

    def execution_credentials(self, config: Mapping[str, Any]) -> dict[str, str]:
        """Return the credentials of a function as environment variables."""
        function, role = str(config["FunctionArn"]), str(config["Role"])
        with self._lock:
            if (function, role) not in self._environments:
                self._environments[function, role] = self._new_session(function, role)
            return dict(self._environments[function, role])

    def _new_session(self, function: str, role: str) -> dict[str, str]:
        account, role_name = function.split(":")[4], role.rpartition("/")[2]
        session_name = function.split(":")[6][:64]
        environment = {
            "AWS_ACCESS_KEY_ID": f"ASIA{secrets.token_hex(8).upper()}",
            "AWS_SECRET_ACCESS_KEY": secrets.token_hex(20),
            "AWS_SESSION_TOKEN": secrets.token_hex(32),
        }
        session = {
            "Arn": f"arn:aws:sts::{account}:assumed-role/{role_name}/{session_name}",
            "UserId": f"{role_name}:{session_name}",
            "SecretAccessKey": environment["AWS_SECRET_ACCESS_KEY"],
            "SessionToken": environment["AWS_SESSION_TOKEN"],
        }
        self._register(environment["AWS_ACCESS_KEY_ID"], session)
        return environment


def install(runtime: ModuleType, service: ModuleType, sessions: ModuleType) -> None:
    """Make MiniStack's Lambda runtime and its Lambda service use random credentials."""
    credentials = FunctionCredentials(sessions.register_session)
    runtime.execution_credentials = credentials.execution_credentials  # type: ignore[attr-defined]
    service.execution_credentials = credentials.execution_credentials  # type: ignore[attr-defined]
