"""protocol §11: pauses, releases and notifications in the templates, and the keys of the mesh file."""

import json
import re
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from asya.protocol.pause import Pause, PauseField
from asya_infra.constructs.crew import PauseNotifications
from asya_infra.limits.aws_limits import EVENT_PATTERN
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh, to_table
from asya_infra.mesh_file.source import MeshFileError
from asya_infra.options import Options
from tests.infra.conftest import text
from tests.infra.test_permissions import reads_secret_of_tokens, resources, statements

BUCKET = "arn:<Partition>:s3:::asya-shop-<AccountId>-<Region>"


_HOLDING = ("x-pause", "x-resume")


@pytest.mark.rule("1.crew.sweeps")
def test_only_a_mesh_that_pauses_or_waits_has_their_functions(shop: Any, plain: Any, private_local: Any) -> None:
    # One names x-pause, one has a pause actor of its own, and one holds no envelope.
    for mesh, namespace, expected in (
        (shop, "shop", {"x-pause", "x-resume"}),
        (plain, "plain-test", {"x-resume"}),
        (private_local, "light", set()),
    ):
        functions = {each["FunctionName"] for each in mesh.resources("AWS::Lambda::Function")}
        queues = {each["QueueName"] for each in mesh.resources("AWS::SQS::Queue")}
        prefix = f"asya-{namespace}-"
        assert {name for name in _HOLDING if f"{prefix}{name}" in functions} == expected
        assert {name for name in _HOLDING if f"{prefix}{name}-dlq" in queues} == expected


def test_the_tasks_table_has_an_index_of_waiting_tasks(shop: Any) -> None:
    table = shop.one("AWS::DynamoDB::Table", TableName="asya-shop-tasks")
    index = next(each for each in table["GlobalSecondaryIndexes"] if each["IndexName"] == "waiting")
    assert [key["AttributeName"] for key in index["KeySchema"]] == ["waits_in", "waits_since"]
    assert index["Projection"] == {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["actor"]}


def test_the_sweep_reads_what_waits(shop: Any) -> None:
    table = "arn:<Partition>:dynamodb:<Region>:<AccountId>:table/asya-shop-tasks"
    assert {table, f"{table}/index/waiting"} <= resources(shop, "x-clock", "dynamodb:Query")


@pytest.mark.parametrize("actor", ["x-pause", "approve", "x-resume"])
def test_these_actors_store_paused_envelopes(shop: Any, actor: str) -> None:
    assert f"{BUCKET}/paused/*" in resources(shop, actor, "s3:PutObject")
    assert f"{BUCKET}/paused/*" in resources(shop, actor, "s3:GetObject")


def test_no_other_function_writes_paused_envelopes(shop: Any) -> None:
    for actor in ("intake", "crunch", "x-sink", "x-gateway-api", "x-clock"):
        assert f"{BUCKET}/paused/*" not in resources(shop, actor, "s3:PutObject")
    assert f"{BUCKET}/paused/*" in resources(shop, "x-gateway-api", "s3:GetObject")


def test_a_pause_actor_publishes_events_of_this_mesh_only(shop: Any) -> None:
    (publishing,) = [each for each in statements(shop, "approve") if "events:PutEvents" in each["Action"]]
    assert publishing["Resource"] in (
        "arn:<Partition>:events:<Region>:<AccountId>:event-bus/default",
        ["arn:<Partition>:events:<Region>:<AccountId>:event-bus/default"],
    )
    assert publishing["Condition"] == {"StringEqualsIfExists": {"events:source": "asya.shop"}}


KEY = "Notifications of paused tasks of the mesh shop"


def test_notifications_use_a_topic_with_its_own_key(shop: Any) -> None:
    topic = shop.one("AWS::SNS::Topic", TopicName="asya-shop-pauses")
    assert topic["KmsMasterKeyId"].startswith("<PauseNotificationsKey")
    assert shop.one("AWS::KMS::Key", Description=KEY)["EnableKeyRotation"] is True


def test_the_topic_accepts_only_the_rule_and_only_tls(shop: Any) -> None:
    (policy,) = shop.resources("AWS::SNS::TopicPolicy", "functions")
    allowed = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"]
    denied = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
    rule = "arn:<Partition>:events:<Region>:<AccountId>:rule/asya-shop-pauses"
    assert [each["Principal"] for each in allowed] == [{"Service": "events.amazonaws.com"}]
    assert [each["Condition"] for each in allowed] == [{"ArnEquals": {"aws:SourceArn": rule}}]
    assert [each["Condition"] for each in denied] == [{"Bool": {"aws:SecureTransport": "false"}}]


@pytest.mark.rule("11.pause.notify")
def test_eventbridge_may_use_the_key_of_the_topic_without_conditions(shop: Any) -> None:
    """SNS does not support aws:SourceArn, aws:SourceAccount and aws:SourceOrgID for events to encrypted topics."""
    statements = shop.one("AWS::KMS::Key", Description=KEY)["KeyPolicy"]["Statement"]
    [own] = [each for each in statements if "Service" in each["Principal"]]
    assert own["Principal"] == {"Service": "events.amazonaws.com"}
    assert "Condition" not in own
    assert own["Action"] == ["kms:Decrypt", "kms:GenerateDataKey*"]


UNDELIVERED = "arn:<Partition>:sqs:<Region>:<AccountId>:asya-shop-x-undelivered"


def test_what_cannot_be_delivered_is_kept_and_an_alarm_tells(shop: Any) -> None:
    """The rules of functions have no such queue: the alarms on sweeps that stopped tell about them."""
    targets = [target for rule in shop.resources("AWS::Events::Rule") for target in rule["Targets"]]
    silent = [target for target in targets if not re.search(r"Function[0-9A-F]{8}\.Arn", str(target["Arn"]))]
    assert len(silent) >= 4
    assert [target.get("DeadLetterConfig") for target in silent] == [{"Arn": UNDELIVERED}] * len(silent)
    subscriptions = shop.resources("AWS::SNS::Subscription")
    assert len(subscriptions) >= 6
    assert all(text(each["RedrivePolicy"]) == {"deadLetterTargetArn": UNDELIVERED} for each in subscriptions)
    alarm = shop.one("AWS::CloudWatch::Alarm", AlarmName="asya-shop-undelivered")
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": "asya-shop-x-undelivered"}]
    assert alarm["AlarmActions"]


def test_only_rules_and_topics_of_the_mesh_may_send_there(shop: Any) -> None:
    policies = [each["PolicyDocument"]["Statement"] for each in shop.resources("AWS::SQS::QueuePolicy")]
    [own] = [each for each in policies if "xundelivered" in str(each)]
    allowed = {each["Principal"]["Service"]: each["Condition"] for each in own if each["Effect"] == "Allow"}
    arn = "arn:<Partition>:{}:<Region>:<AccountId>:{}".format
    assert allowed == {
        "events.amazonaws.com": {
            "ArnLike": {"aws:SourceArn": [arn("events", "rule/asya-shop-*"), arn("events", "rule/*/asya-shop-*")]}
        },
        "sns.amazonaws.com": {"ArnLike": {"aws:SourceArn": [arn("sns", "asya-shop-*")]}},
    }


def notifications(mesh: Any, kind: str) -> dict[str, Any]:
    """Return the resources of a type that notify of the pauses of a mesh."""
    stack = Stack(App(), "Stack")
    PauseNotifications(stack, Mesh(mesh, Options(mesh=mesh.path)))
    found: dict[str, Any] = Template.from_stack(stack).find_resources(kind)
    return found


@pytest.mark.parametrize("linked", [2, 200])
def test_the_pattern_fits_into_a_rule_however_many_actors_have_links(tmp_path: Path, linked: int) -> None:
    actors = [
        f"  ask-{number:03}: {{kind: pause, pause: {{notify: a@b.example, callback: true}}}}"
        for number in range(linked)
    ]
    mesh = loaded(tmp_path, "{notify: a@b.example}", *actors)
    [rule] = [
        each["Properties"]["EventPattern"]
        for each in notifications(mesh, "AWS::Events::Rule").values()
        if "EventBusName" not in each["Properties"]
    ]
    assert len(json.dumps(rule, separators=(",", ":"))) <= EVENT_PATTERN.value
    # An actor without links is always told; those with links are left out here if there is room for their names.
    assert ("detail" in rule) is (linked == 2)


def test_the_id_of_a_subscription_follows_from_its_address(tmp_path: Path) -> None:
    """A number would shift when an address is added: the others would be replaced, and might be unsubscribed."""

    def ids(folder: str, *addresses: str) -> dict[str, str]:
        resources = notifications(
            loaded(tmp_path / folder, f"{{notify: [{', '.join(addresses)}]}}"), "AWS::SNS::Subscription"
        )
        return {each["Properties"]["Endpoint"]: name for name, each in resources.items()}

    before = ids("a", "m@example.org", "z@example.org")
    after = ids("b", "a@example.org", "m@example.org", "z@example.org")
    assert {address: after[address] for address in before} == before


@pytest.mark.rule("11.pause.notify")
def test_the_rule_sends_the_meshs_own_events_to_the_topic(shop: Any) -> None:
    rule = shop.one("AWS::Events::Rule", Name="asya-shop-pauses")
    assert rule["EventPattern"] == {"source": ["asya.shop"], "detail-type": ["Task Paused"]}
    (target,) = rule["Targets"]
    assert (target["Arn"].startswith("<PauseNotificationsTopic"), target["InputPath"]) == (True, "$.detail")


@pytest.mark.rule("11.pause.notify")
def test_each_address_subscribes_to_its_actors(shop: Any) -> None:
    subscriptions = shop.resources("AWS::SNS::Subscription", "functions")
    assert sorted((each["Protocol"], each["Endpoint"]) for each in subscriptions) == [
        ("email", "orders@example.org"),
        ("https", "https://example.org/orders"),
        ("sqs", "arn:aws:sqs:eu-west-1:111122223333:orders"),
    ]
    for each in subscriptions:
        assert (text(each["FilterPolicy"]), each["FilterPolicyScope"]) == ({"actor": ["approve"]}, "MessageBody")


def test_a_mesh_without_notifications_has_no_key(plain: Any) -> None:
    assert plain.resources("AWS::SNS::Topic") == []
    assert plain.resources("AWS::KMS::Key") == []


def loaded(folder: Path, pause: str, *more: str) -> Any:
    (folder / "functions" / "handlers").mkdir(parents=True)
    (folder / "functions" / "handlers" / "shop.py").write_text("def one(payload): return payload\n")
    content = f"namespace: shop\nactors:\n  one: {{handler: shop.one}}\n  ask:\n    kind: pause\n    pause: {pause}\n"
    (folder / "mesh.yaml").write_text("\n".join([dedent(content), *more]))
    return load_mesh(folder / "mesh.yaml")


def test_the_settings_are_in_the_table(tmp_path: Path) -> None:
    fields = (
        "[{name: a, type: number, payload_key: /x, required: false, default: 1, options: [1, 2], prompt: How many}]"
    )
    table = to_table(loaded(tmp_path, f"{{prompt: Sure, fields: {fields}}}"))
    field = PauseField(
        name="a", type="number", payload_key="/x", required=False, default=1, options=(1, 2), prompt="How many"
    )
    assert table.actors["ask"].pause == Pause(prompt="Sure", fields=(field,))


@pytest.mark.parametrize(
    ("pause", "problem"),
    [
        ("{fields: [{name: a, type: string}, {name: a, type: number}]}", "fields[1].name: a field 'a' exists already"),
        ("{fields: [{name: a, type: string, payload_key: a}]}", "payload_key: 'a' is not a JSON pointer"),
        ("{fields: [{name: a, type: string, default: [1]}]}", "default: should be a string, not [1]"),
        ("{fields: [{name: a, type: string, default: c, options: [a, b]}]}", 'default: should be one of "a", "b"'),
        ("{fields: [{name: a, type: date}]}", "fields[0].type: should be"),
        (f"{{prompt: {'x' * 40_000}}}", "bytes of prompts and options; 32768 at most"),
        (
            "{notify: [me]}",
            "notify[0]: should be an e-mail address, an https:// URL or the ARN of an SQS queue; got 'me'",
        ),
        (
            "{notify: 'http://example.org'}",
            "should be an e-mail address, an https:// URL or the ARN of an SQS queue; got 'http://example.org'",
        ),
    ],
)
def test_invalid_questions_are_refused(tmp_path: Path, pause: str, problem: str) -> None:
    with pytest.raises(MeshFileError) as refused:
        loaded(tmp_path, pause)
    assert problem in str(refused.value)


@pytest.mark.rule("11.callback.open")
def test_only_a_mesh_with_links_has_the_open_calls(plain: Any, shop: Any) -> None:
    def routes(mesh: Any) -> dict[str, str]:
        found = mesh.resources("AWS::ApiGatewayV2::Route", "gateway")
        return {each["RouteKey"]: each["AuthorizationType"] for each in found if "/callbacks" in each["RouteKey"]}

    assert routes(shop) == {}
    # The API for tokens does not have them.
    assert routes(plain) == {"GET /callbacks": "NONE", "POST /callbacks": "NONE"}
    settings = [
        each["RouteSettings"] for each in plain.resources("AWS::ApiGatewayV2::Stage") if "RouteSettings" in each
    ]
    (limits,) = [each for each in settings if "GET /callbacks" in each]
    assert limits["POST /callbacks"] == {"ThrottlingRateLimit": 10, "ThrottlingBurstLimit": 20}


@pytest.mark.rule("11.callback.token")
def test_pause_actors_with_links_and_the_api_sign_tokens(plain: Any) -> None:
    def signs(name: str) -> bool:
        return reads_secret_of_tokens(plain, name, "plain-test")

    assert {name for name in ("sign-off", "x-resume", "score", "x-gateway-api", "embargo") if signs(name)} == {
        "sign-off",
        "x-gateway-api",
    }


@pytest.mark.parametrize(
    ("pause", "problem"),
    [
        ("{callback_key: /x}", "callback_key: needs callback: true"),
        ("{callback: true, callback_key: x}", "callback_key: 'x' is not a JSON pointer"),
    ],
)
def test_a_place_for_the_link_needs_a_link(tmp_path: Path, pause: str, problem: str) -> None:
    with pytest.raises(MeshFileError) as refused:
        loaded(tmp_path, pause)
    assert problem in str(refused.value)
