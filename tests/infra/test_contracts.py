"""Templates record the contracts of the mesh for the next deployment."""

from asya_infra.contracts.mesh_contracts import ActorContract, ToolContract, read_contracts
from tests.infra.conftest import SynthesizedMesh


def test_the_templates_of_a_mesh_record_its_contracts(shop: SynthesizedMesh) -> None:
    contracts = read_contracts(shop.templates.values())
    assert contracts is not None
    scored = {
        "type": "object",
        "title": "Scored",
        "properties": {"Ref": {"type": "string"}, "score": {"type": "number"}},
        "required": ["Ref", "score"],
        "additionalProperties": False,
    }
    assert contracts.actors == {
        "audit": ActorContract(output=scored),
        "crunch": ActorContract({"type": "object", "additionalProperties": {"type": "number"}}, next=("score", "free")),
        "free": ActorContract(output=scored),
        "score": ActorContract(output=scored, next=("audit",)),
    }
    assert contracts.tools == {"order": ToolContract({"type": "object"}, ("intake",), "score")}


def test_the_local_cloud_records_none(plain: SynthesizedMesh) -> None:
    assert read_contracts(plain.templates.values()) is None
