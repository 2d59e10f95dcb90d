"""What AWS sends to the queue of triggers: notifications of the bucket, rules, and the policy of the queue."""

import json
from pathlib import Path
from typing import Any

import pytest

from asya.capabilities.triggers.statements import TRIGGERS
from asya.protocol import names
from asya.senders.statements import named_in
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.load import load_mesh
from asya_infra.options import Options
from tests.infra.conftest import SynthesizedMesh, synthesize

MESH = """
namespace: landing
code: handlers
storage: {{results_bucket: shop-results}}
actors:
  count: {{handler: work.keep, access: [{{bucket: data, read: "raw/*"}}]}}
{more}
triggers:
  flights: {{route: [count], s3: {{bucket: data, prefix: raw/, suffix: .csv.gz}}}}
  everything: {{route: [count], s3: {{bucket: data, prefix: raw/big/}}}}
  photos: {{route: [count], s3: {{bucket: data, prefix: photos/}}}}
  off: {{route: [count], enabled: false, s3: {{bucket: data, prefix: off/}}}}
  nightly: {{route: [count], cron: "0 2 * * *"}}
  partner: {{route: [count], s3: {{bucket: partner-files, prefix: incoming/, suffix: .csv}}}}
  results: {{route: [count], s3: {{bucket: results, prefix: exports/}}}}
  orders: {{route: [count], event: {{source: [shop], detail-type: [OrderPlaced], bus: shop}}, input: /detail}}
"""


def write_mesh(folder: Path, more: str = "") -> Path:
    (folder / "handlers").mkdir(exist_ok=True)
    (folder / "handlers" / "work.py").write_text("def keep(payload):\n    return payload\n")
    file = folder / "mesh.yaml"
    file.write_text(MESH.format(more=more))
    return file


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    folder = tmp_path_factory.mktemp("landing")
    return synthesize(folder / "out", mesh=str(write_mesh(folder)))


@pytest.mark.rule("16.objects.notifications")
def test_16_the_bucket_notifies_of_keys_that_do_not_overlap(landing: SynthesizedMesh) -> None:
    """The filters of `raw/` with a suffix and of `raw/big/` without one would overlap; a trigger that is off has none."""
    bucket = landing.one("AWS::S3::Bucket")
    notified = bucket["NotificationConfiguration"]["QueueConfigurations"]
    assert [{rule["Name"]: rule["Value"] for rule in each["Filter"]["S3Key"]["Rules"]} for each in notified] == [
        {"prefix": "data/photos/"},
        {"prefix": "data/raw/"},
    ]
    assert {each["Event"] for each in notified} == {"s3:ObjectCreated:*"}
    assert {each["Queue"].rpartition(":")[2] for each in notified} == {"asya-landing-x-triggers"}


@pytest.mark.rule("16.objects.notifications")
def test_16_the_queue_and_its_policy_exist_before_the_bucket_notifies_them(landing: SynthesizedMesh) -> None:
    """S3 sends a test to the queue when the notifications are written."""
    manifest = json.loads((landing.folder / "manifest.json").read_text())["artifacts"]
    assert "Asya-landing-queues-0" in manifest["Asya-landing-state"]["dependencies"]


@pytest.mark.rule("16.events", "16.objects.existing")
def test_16_each_trigger_on_a_bus_has_a_rule_that_names_it(landing: SynthesizedMesh) -> None:
    rules = {
        rule["Name"]: rule
        for rule in landing.resources("AWS::Events::Rule")
        if rule["Name"].startswith("asya-landing-trigger-")
    }
    assert {name: (rule.get("EventBusName"), rule["EventPattern"]) for name, rule in rules.items()} == {
        "asya-landing-trigger-orders": ("shop", {"source": ["shop"], "detail-type": ["OrderPlaced"]}),
        "asya-landing-trigger-partner": (None, created("partner-files", {"wildcard": "incoming/*.csv"})),
        "asya-landing-trigger-results": (None, created("shop-results", {"prefix": "exports/"})),
    }
    [target] = rules["asya-landing-trigger-orders"]["Targets"]
    assert target["Arn"].endswith(":asya-landing-x-triggers")
    assert target["InputTransformer"] == {"InputTemplate": '{"trigger":"orders","event":<aws.events.event.json>}'}


def created(bucket: str, key: dict[str, str]) -> dict[str, Any]:
    return {
        "source": ["aws.s3"],
        "detail-type": ["Object Created"],
        "detail": {"bucket": {"name": [bucket]}, "object": {"key": [key]}},
    }


@pytest.mark.rule("16.senders")
def test_16_only_the_mesh_and_its_sources_send_to_the_queue(landing: SynthesizedMesh) -> None:
    [policy] = [
        policy["PolicyDocument"]["Statement"]
        for policy in landing.resources("AWS::SQS::QueuePolicy", "queues-0")
        if any("AsyaQueue" in str(queue) or "xtriggersQueue" in str(queue) for queue in policy["Queues"])
    ]
    allowed = {each["Principal"]["Service"]: each["Condition"] for each in policy if each["Effect"] == "Allow"}
    bucket = landing.one("AWS::S3::Bucket")["BucketName"]
    assert allowed == {
        "s3.amazonaws.com": {
            "ArnEquals": {"aws:SourceArn": f"arn:<Partition>:s3:::{bucket}"},
            "StringEquals": {"aws:SourceAccount": "<AccountId>"},
        },
        "events.amazonaws.com": {
            "ArnLike": {
                "aws:SourceArn": [
                    "arn:<Partition>:events:<Region>:<AccountId>:rule/asya-landing-trigger-*",
                    "arn:<Partition>:events:<Region>:<AccountId>:rule/*/asya-landing-trigger-*",
                ]
            }
        },
    }
    [denial] = [each for each in policy if each["Action"] == "sqs:SendMessage" and each["Effect"] == "Deny"]
    assert denial["Condition"]["Bool"] == {"aws:PrincipalIsAWSService": "false"}
    assert denial["Condition"]["ArnNotEquals"]["aws:PrincipalArn"] == [
        f"arn:<Partition>:iam::<AccountId>:role/asya-landing-{function}-<Region>"
        for function in ("x-clock", "x-gateway-api", "x-hooks", "x-reports", "x-triggers")
    ]


@pytest.mark.rule("16.backfill.at-once", "16.overlap.queue")
def test_16_lambda_stops_no_function_between_the_end_of_a_task_and_the_next_start(landing: SynthesizedMesh) -> None:
    """It would take a backfill, or the tasks of a lane, for an endless loop after 16 of them."""
    allowed = {
        function["FunctionName"].removeprefix("asya-landing-")
        for function in landing.resources("AWS::Lambda::Function")
        if function.get("RecursiveLoop") == "Allow"
    }
    assert {"count", "x-sink", "x-reports", "x-triggers"} <= allowed
    assert not {"x-clock", "x-gateway-api"} & allowed


@pytest.mark.rule("16.loop.guard")
@pytest.mark.parametrize(
    ("trigger", "allowed"),
    [
        ("s3: {bucket: data, prefix: raw/}", False),
        ("event: {source: [shop]}", False),
        ("event: {source: [shop]}, overlap: queue", True),
        ("event: {source: [shop]}, debounce: 5s", True),
        ('cron: "0 2 * * *"', True),
    ],
)
def test_16_lambda_ends_a_loop_through_other_systems_where_no_chain_is_wanted(
    tmp_path: Path, trigger: str, allowed: bool
) -> None:
    (tmp_path / "handlers").mkdir()
    (tmp_path / "handlers" / "work.py").write_text("def keep(payload):\n    return payload\n")
    file = tmp_path / "mesh.yaml"
    file.write_text(
        "namespace: landing\ncode: handlers\nactors: {count: {handler: work.keep}}\n"
        f"triggers: {{t: {{route: [count], {trigger}}}}}\n"
    )
    mesh = Mesh(load_mesh(file, ""), Options(mesh=file))
    assert mesh.is_in_chains(names.TRIGGERS) is allowed
    assert mesh.is_in_chains("count")


def test_a_mesh_without_such_triggers_has_neither_notifications_nor_rules(plain: SynthesizedMesh) -> None:
    """Nothing costs that nobody asks for."""
    assert "NotificationConfiguration" not in plain.one("AWS::S3::Bucket")
    assert not [rule for rule in plain.resources("AWS::Events::Rule") if "-trigger-" in rule["Name"]]
    manifest = json.loads((plain.folder / "manifest.json").read_text())["artifacts"]
    assert not any(
        "queues" in each
        for each in manifest[next(name for name in manifest if name.endswith("-state"))].get("dependencies", [])
    )


@pytest.mark.rule("16.senders", "16.senders.forms")
def test_16_every_function_that_may_send_by_iam_is_allowed_by_the_policy_of_the_queue(landing: SynthesizedMesh) -> None:
    """A new function that sends there has to be among those of the rule, with its messages."""
    queue = ":asya-landing-x-triggers"
    senders = {
        role["RoleName"].replace("asya-landing-", "").replace("-<Region>", "")
        for role in landing.resources("AWS::IAM::Role")
        for policy in role.get("Policies", [])
        for statement in policy["PolicyDocument"]["Statement"]
        if "sqs:SendMessage" in as_list(statement["Action"])
        and any(each.endswith(queue) for each in as_list(statement["Resource"]))
    }
    assert {"x-clock", "x-reports", "x-gateway-api"} <= senders <= named_in(TRIGGERS, names.TRIGGERS)


def as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
