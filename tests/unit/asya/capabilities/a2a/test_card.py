"""The public agent card (`protocol §13`, `/.well-known/agent-card.json`)."""

import pytest
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from msgspec.structs import replace as changed

from tests.doubles.gateway_functions import MESH, Gateway, route_event, signed_by, with_token

pytestmark = pytest.mark.usefixtures("with_tools")


@pytest.mark.rule("13.a2a.card")
def test_the_card_is_public_and_has_one_skill_per_tool(gateway: Gateway) -> None:
    status, card = gateway.api(signed_by(route_event("GET /.well-known/agent-card.json"), None))
    url = "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com/a2a"
    assert (status, card["name"]) == (200, "flights")
    assert [(each["url"], each["protocolVersion"]) for each in card["supportedInterfaces"]] == [(url, "1.0")]
    assert card["capabilities"] == {"streaming": True, "pushNotifications": True}
    assert [(skill["id"], skill["inputModes"]) for skill in card["skills"]] == [
        ("analyse", ["application/json", "text/plain"]),
        ("plain", ["application/json"]),
    ]
    assert '"pattern":"^raw/"' in card["skills"][0]["description"]
    assert list(card["securitySchemes"]) == ["sigv4"]


@pytest.mark.rule("13.a2a.card")
def test_the_card_repeats_the_mesh_file(gateway: Gateway) -> None:
    skill = {"id": "plain", "name": "Plain", "description": "d", "tags": ["flights"]}
    agent = changed(MESH.agent, name="Flights", description="All about flights", version="2.1", skills=(skill,))
    gateway.mesh = changed(gateway.mesh, agent=agent)
    card = gateway.api(route_event("GET /.well-known/agent-card.json"))[1]
    assert [card[name] for name in ("name", "description", "version")] == ["Flights", "All about flights", "2.1"]
    [declared] = card["skills"]
    assert declared == skill | {"inputModes": ["application/json"], "outputModes": ["application/json"]}


@pytest.mark.rule("13.a2a.card")
def test_the_card_of_the_token_api_names_its_scheme(gateway: Gateway) -> None:
    gateway.environ = gateway.environ | {"ASYA_GATEWAY_URL": "https://a1b2c3d4e5.execute-api.us-east-1.amazonaws.com"}
    event = route_event("GET /.well-known/agent-card.json")
    assert gateway.api(event)[1]["securityRequirements"] == [{"schemes": {"sigv4": {"list": []}}}]
    card = gateway.api(with_token(event, "alice"))[1]
    assert card["securityRequirements"] == [{"schemes": {"jwt": {"list": []}}}]
    assert not card["supportedInterfaces"][0]["url"].startswith("https://a1b2c3d4e5.")


@pytest.mark.rule("13.a2a.card", "13.a2a.versions")
def test_the_official_client_takes_the_card(gateway: Gateway) -> None:
    card = parse_agent_card(gateway.api(route_event("GET /.well-known/agent-card.json"))[1])
    [interface] = card.supported_interfaces
    assert (interface.protocol_binding, interface.protocol_version) == ("JSONRPC", "1.0")
    assert list(card.security_schemes) == ["sigv4"]
    client = ClientFactory(ClientConfig()).create(card)
    assert type(client._transport).__name__ == "JsonRpcTransport"
