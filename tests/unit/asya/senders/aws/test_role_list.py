"""The list of roles in a table, and what a process remembers of it (`protocol §4.roles`)."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import UNSET

from asya.senders.aws.role_list import ASK_AGAIN, RoleItems, RoleList
from asya.senders.roles import KEEP_FORMER, ListChange
from tests.doubles.mesh_world import MeshWorld

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
TABLE = "asya-shop-sink"
NOBODY: frozenset[str] = frozenset()


pytestmark = pytest.mark.lists_roles


@pytest.fixture
def items(world: MeshWorld) -> RoleItems:
    return RoleItems(world.dynamodb, TABLE)


def expiry(world: MeshWorld, role_id: str) -> object:
    for item in world.dynamodb.tables[TABLE].items.values():
        if item["pk"]["S"] == f"ROLE#{role_id}":
            return item["expires_at"]["N"] if "expires_at" in item else None
    return UNSET


@pytest.mark.rule("4.roles")
def test_a_former_role_stays_listed_while_its_messages_may_be_left(world: MeshWorld, items: RoleItems) -> None:
    items.write(ListChange({"AROA1": "infer", "AROA2": "post"}, NOBODY), NOW)
    items.write(ListChange({"AROA2": "post"}, frozenset({"AROA1"})), NOW)
    assert items.function_of("AROA1") == "infer"
    assert expiry(world, "AROA1") == str(int((NOW + KEEP_FORMER).timestamp()))
    assert expiry(world, "AROA2") is None


@pytest.mark.rule("4.roles")
def test_a_role_that_is_listed_again_does_not_expire(world: MeshWorld, items: RoleItems) -> None:
    items.write(ListChange({}, frozenset({"AROA1"})), NOW)
    assert items.function_of("AROA1") is None
    items.write(ListChange({"AROA1": "infer"}, NOBODY), NOW)
    assert (items.function_of("AROA1"), expiry(world, "AROA1")) == ("infer", None)


class Counting(RoleItems):
    """Counts the reads."""

    reads = 0

    def function_of(self, role_id: str) -> str | None:
        self.reads += 1
        return super().function_of(role_id)


def test_a_process_asks_once_for_a_role_and_once_a_minute_for_a_stranger(world: MeshWorld) -> None:
    items, time = Counting(world.dynamodb, TABLE), [NOW]
    items.write(ListChange({"AROA1": "infer"}, NOBODY, completes=True), NOW)
    roles = RoleList(items, lambda: time[0])
    assert [roles.function_of("AROA1") for _ in range(3)] == ["infer"] * 3
    assert [roles.function_of("AROAX") for _ in range(3)] == [None] * 3
    assert items.reads == 3  # one of them asks whether the list is complete
    items.write(ListChange({"AROAX": "post"}, NOBODY), NOW)
    assert roles.function_of("AROAX") is None
    time[0] = NOW + ASK_AGAIN + timedelta(seconds=1)
    assert roles.function_of("AROAX") == "post"
    assert items.reads == 4


@pytest.mark.rule("4.roles.first")
def test_until_all_stacks_have_listed_their_roles_every_sender_counts_as_one(
    world: MeshWorld, items: RoleItems
) -> None:
    roles = RoleList(items, lambda: NOW)
    assert roles.is_listed("AROAX")
    assert not roles.is_complete()
    items.write(ListChange({"AROA1": "infer"}, NOBODY, completes=True), NOW)
    assert [roles.is_listed(role) for role in ("AROAX", "AROA1")] == [False, True]


def test_many_strangers_need_no_memory(world: MeshWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("asya.senders.aws.role_list._CACHE_SIZE", 3)
    roles = RoleList(RoleItems(world.dynamodb, TABLE), lambda: NOW)
    for number in range(10):
        assert roles.function_of(f"AROA{number}") is None
    assert len(roles._unlisted) <= 3
