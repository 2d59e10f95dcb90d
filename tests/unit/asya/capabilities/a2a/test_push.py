"""Push configurations of Agent2Agent (`protocol §13`, `/a2a`)."""

import json

import pytest
from msgspec.structs import replace as changed

from asya.function.aws import clients
from asya.protocol import names
from asya.protocol.mesh_table import Gateway as GatewayLimits
from tests.doubles.agents import Json, error, result, start_task, tool_message
from tests.doubles.gateway_functions import Gateway, report, route_event

pytestmark = pytest.mark.usefixtures("with_tools")


@pytest.mark.rule("13.a2a.push.config")
def test_configurations_are_set_read_listed_and_deleted(gateway: Gateway) -> None:
    task_id = start_task(gateway)
    config = {
        "url": "https://client.example/n",
        "token": "t",
        "authentication": {"scheme": "Bearer", "credentials": "s"},
    }
    created = result(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "id": "c", **config})
    shown = {**config, "id": "c", "taskId": task_id, "authentication": {"scheme": "Bearer"}}
    assert created == shown
    assert result(gateway, "GetTaskPushNotificationConfig", {"taskId": task_id, "id": "c"}) == shown
    assert result(gateway, "ListTaskPushNotificationConfigs", {"taskId": task_id}) == {"configs": [shown]}
    own = result(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "https://client.example/o"})
    assert own == {"url": "https://client.example/o", "id": task_id, "taskId": task_id}
    assert result(gateway, "GetTaskPushNotificationConfig", {"taskId": task_id}) == own
    assert len(result(gateway, "ListTaskPushNotificationConfigs", {"taskId": task_id})["configs"]) == 2
    assert result(gateway, "DeleteTaskPushNotificationConfig", {"taskId": task_id, "id": "c"}) is None
    assert [
        each["id"] for each in result(gateway, "ListTaskPushNotificationConfigs", {"taskId": task_id})["configs"]
    ] == [task_id]
    assert error(gateway, "GetTaskPushNotificationConfig", {"taskId": task_id, "id": "c"})["code"] == -32602
    assert error(gateway, "DeleteTaskPushNotificationConfig", {"taskId": task_id})["code"] == -32602
    assert error(gateway, "GetTaskPushNotificationConfig", {"taskId": task_id, "id": "c" * 2000})["code"] == -32602


def item(task_id: str, key: str = "record") -> Json:
    table = names.table_name("flights", "tasks")
    record: Json = dict(
        clients.dynamodb().get_item(TableName=table, Key={"pk": {"S": task_id}, "sk": {"S": key}})["Item"]
    )
    return record


@pytest.mark.rule("13.a2a.push.cost")
def test_a_task_is_watched_only_with_a_configuration(gateway: Gateway) -> None:
    assert "is_watched" not in item(start_task(gateway))
    config = {"taskPushNotificationConfig": {"url": "https://client.example/n"}}
    task_id = result(gateway, "SendMessage", tool_message(number=2) | {"configuration": config})["task"]["id"]
    assert item(task_id)["is_watched"] == {"BOOL": True}
    assert json.loads(item(task_id, f"a2a-push#{task_id}")["target"]["S"]) == {
        "url": "https://client.example/n",
    }
    # Reports do not change it.
    report(gateway, task_id, "received", 1)
    report(gateway, task_id, "succeeded", 2)
    assert item(task_id)["is_watched"] == {"BOOL": True}


@pytest.mark.rule("13.a2a.push.address")
@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"url": "http://client.example/n"}, "url"),
        ({"url": "ftp://client.example/n"}, "url"),
        ({"url": "https://me:secret@client.example/n"}, "url"),
        ({"url": "https://169.254.169.254/latest"}, "url"),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "url"),
        ({"url": "https://localhost/n"}, "url"),
        ({"url": "https://x.internal/"}, "url"),
        ({"url": "https://x.example/a b"}, "url"),
        ({"url": "https://x.example:99999/"}, "url"),
        ({"url": "https://[x/"}, "url"),
        ({"url": "https://x.example/" + "a" * 2048}, "url"),
        ({"url": "https://x.example/", "token": "a\r\nb: c"}, "token"),
        ({"url": "https://x.example/", "authentication": {"scheme": "Bearer", "credentials": "ü"}}, "credentials"),
        ({"url": "https://x.example/", "id": "c" * 129}, "id"),
    ],
)
def test_invalid_addresses_are_refused(gateway: Gateway, config: Json, field: str) -> None:
    failure = error(gateway, "CreateTaskPushNotificationConfig", {"taskId": start_task(gateway), **config})
    assert (failure["code"], failure["data"][0]["metadata"]) == (-32602, {"field": field})


@pytest.mark.rule("13.a2a.push.address")
def test_a_host_that_the_mesh_file_allows_may_be_private(gateway: Gateway) -> None:
    task_id = start_task(gateway)
    assert result(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "http://127.0.0.1:9/n"})
    assert error(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "http://127.0.0.1:8/n"})


@pytest.mark.rule("13.a2a.push.address")
def test_the_gateway_of_another_mesh_gets_no_notifications(gateway: Gateway) -> None:
    task_id = start_task(gateway)
    gateway.mesh = changed(gateway.mesh, gateway=GatewayLimits(foreign_gateways=("127.0.0.1:9",)))
    assert error(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "http://127.0.0.1:9/n"})


@pytest.mark.rule("13.a2a.push.config")
def test_a_task_has_no_more_than_ten_configurations(gateway: Gateway) -> None:
    task_id = start_task(gateway)
    for number in range(10):
        result(
            gateway,
            "CreateTaskPushNotificationConfig",
            {"taskId": task_id, "id": str(number), "url": "https://x.example/"},
        )
    result(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "id": "9", "url": "https://y.example/"})
    assert (
        error(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "https://x.example/"})["code"]
        == -32602
    )


@pytest.mark.rule("13.a2a.push.config")
def test_a_mesh_without_tools_sends_none(gateway: Gateway) -> None:
    task_id = start_task(gateway)
    gateway.mesh = changed(gateway.mesh, tools={})
    assert (
        error(gateway, "CreateTaskPushNotificationConfig", {"taskId": task_id, "url": "https://x.example/"})["code"]
        == -32003
    )
    assert gateway.api(route_event("GET /.well-known/agent-card.json"))[0] == 404  # and it has no card
