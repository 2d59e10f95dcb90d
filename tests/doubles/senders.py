"""The senders of messages, and the secrets of their keys, in tests without a deployment."""

from collections.abc import Iterator

import pytest

from asya.protocol import names, task_key
from asya.senders.aws.key_items import KeyItems, MissingSecretError
from asya.senders.aws.role_list import RoleItems
from asya.testing.services.roles import ListedRoles

MOTO_SENDER = "AIDAIT2UOQQY3AUEKVGXU"
"""The sender of every message in moto, which stands for functions of the mesh."""


@pytest.fixture(autouse=True)
def listed_roles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every sender but users (`AIDA…`) is a role of the mesh, unless a test has a list of its own."""
    if request.node.get_closest_marker("lists_roles") is None:
        list_roles(monkeypatch)


MESH_SECRET = b"the secret of a mesh for tests  "
TOKEN_SECRET = b"the secret of tokens for tests  "
"""The secret of each mesh that no test deploys."""


@pytest.fixture(scope="session", autouse=True)
def known_secrets() -> Iterator[None]:
    """Let the secrets be known."""
    with pytest.MonkeyPatch.context() as patch:
        know_secrets(patch)
        yield


def know_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a table without secrets have those that derive from `MESH_SECRET`."""
    stored, stored_for_tokens = KeyItems.secret, KeyItems.token_secret

    def secret(items: KeyItems, actor: str = "") -> bytes:
        try:
            return stored(items, actor)
        except MissingSecretError:
            return task_key.actor_secret(MESH_SECRET, actor) if actor else MESH_SECRET

    def token_secret(items: KeyItems) -> bytes:
        try:
            return stored_for_tokens(items)
        except MissingSecretError:
            return TOKEN_SECRET

    monkeypatch.setattr(KeyItems, "secret", secret)
    monkeypatch.setattr(KeyItems, "token_secret", token_secret)


def list_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every sender but users (`AIDA…`) be the function that its id names (`role_id`), or else the gateway."""

    def function_of(_: RoleItems, role_id: str) -> str | None:
        if role_id.startswith("AIDA") and role_id != MOTO_SENDER:
            return None
        named = ListedRoles().function_of(role_id)
        return named if named in names.SYSTEM_FUNCTIONS else names.GATEWAY_API

    monkeypatch.setattr(RoleItems, "function_of", function_of)
