"""The senders of messages in tests without a list of roles."""

import pytest

from asya.protocol import names
from asya.senders.aws.role_list import RoleItems
from asya.testing.services.roles import ListedRoles

MOTO_SENDER = "AIDAIT2UOQQY3AUEKVGXU"
"""The sender of every message in moto, which stands for functions of the mesh."""


@pytest.fixture(autouse=True)
def listed_roles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sender but users (`AIDA…`) is a role of the mesh, unless a test has a list of its own."""
    if request.node.get_closest_marker("lists_roles") is None:
        list_roles(monkeypatch)


def list_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every sender but users (`AIDA…`) be the function that its id names (`role_id`), or else the gateway."""

    def function_of(_: RoleItems, role_id: str) -> str | None:
        if role_id.startswith("AIDA") and role_id != MOTO_SENDER:
            return None
        named = ListedRoles().function_of(role_id)
        return named if named in names.SYSTEM_FUNCTIONS else names.GATEWAY_API

    monkeypatch.setattr(RoleItems, "function_of", function_of)
