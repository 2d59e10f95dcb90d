"""Contracts in the metadata of templates."""

import json
from typing import Any

from asya_infra.contracts.mesh_contracts import (
    ACTOR,
    TOOLS,
    ActorContract,
    MeshContracts,
    ToolContract,
    actor_records,
    read_contracts,
    tools_record,
)

TEXT = {"type": "string"}
LONG = {"type": "object", "properties": {f"field{number}": TEXT for number in range(20)}}
CONTRACTS = MeshContracts(
    {"bill": ActorContract(TEXT, None, ("ship",)), "check": ActorContract(LONG, LONG)},
    {"order": ToolContract(LONG, ("check",), "bill"), "ask": ToolContract()},
)


def template(**metadata: str) -> dict[str, Any]:
    return {"Resources": {"Function": {"Type": "AWS::Lambda::Function", "Metadata": metadata}, "Queue": {}}}


def templates(contracts: MeshContracts, largest: int = 100_000) -> list[dict[str, Any]]:
    records = actor_records(contracts, ["bill", "check", "untyped"], largest)
    gateway = template(**{"aws:cdk:path": "a/b", TOOLS: tools_record(contracts, largest)})
    return [gateway, {}, *(template(**{ACTOR: record}) for record in records.values())]


def test_what_is_written_is_read() -> None:
    assert read_contracts(templates(CONTRACTS)) == CONTRACTS
    assert read_contracts(templates(MeshContracts())) == MeshContracts()


def test_templates_of_earlier_versions_have_none() -> None:
    assert read_contracts([template(**{"aws:cdk:path": "a/b"}), {"Resources": {}}]) is None
    assert read_contracts([]) is None


def test_equal_contracts_have_equal_texts() -> None:
    turned = MeshContracts({"check": ActorContract(dict(reversed(LONG.items())), LONG)})
    assert actor_records(turned, ["check"])["check"] == actor_records(CONTRACTS, ["check"])["check"]


def test_what_a_template_has_no_room_for_is_left_out() -> None:
    found = read_contracts(templates(CONTRACTS, 300))
    assert found == MeshContracts(
        {"bill": CONTRACTS.actors["bill"]}, {"order": ToolContract(None, ("check",), "bill"), "ask": ToolContract()}
    )


def test_later_versions_may_add_keys() -> None:
    record = json.dumps({"actor": "bill", "input": TEXT, "later": 1})
    found = read_contracts([template(**{ACTOR: record, TOOLS: '{"order": {"later": 1}}'})])
    assert found == MeshContracts({"bill": ActorContract(TEXT)}, {"order": ToolContract()})
