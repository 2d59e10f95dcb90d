"""The alarms of a mesh: one for each concern, told to the receivers of the mesh file."""

import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack

from asya import registry
from asya.protocol.names import runner_of
from asya_infra.constructs.observability import page
from asya_infra.constructs.observability.alarms import MAX_METRICS, alarm_actions
from asya_infra.constructs.observability.mesh_alarms import mesh_alarms
from asya_infra.constructs.observability.series import queue_actors, unqueued_functions
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.mesh_file.notify_model import ThresholdsSection
from asya_infra.options import Options
from tests.infra.test_monitoring import mesh_of

HANDLER = "def one(payload): return payload\n"
TOPIC = "<NotificationsTopic"
REPORTS = ("x-reports", "x-ends")


def alarms(mesh: Any, part: str = "alarms") -> dict[str, dict[str, Any]]:
    return {
        alarm["AlarmName"].removeprefix("asya-shop-"): alarm for alarm in mesh.resources("AWS::CloudWatch::Alarm", part)
    }


NOBODY = ""
OPS = "notify: {email: ops@example.org}"


def light_mesh(folder: Path, more: str = OPS) -> Mesh:
    (folder / "handlers").mkdir(parents=True)
    (folder / "handlers" / "one.py").write_text(HANDLER)
    file = folder / "mesh.yaml"
    file.write_text(f"namespace: shop\ncode: handlers\nactors:\n  a: {{handler: one.one}}\n{more}\n")
    return Mesh(load_mesh(file, ""), Options(mesh=file))


@pytest.mark.rule("11.sump")
def test_each_declared_alarm_is_there(shop: Any) -> None:
    found = alarms(shop)
    groups = {name for name in found if name.startswith("oldest-message-")}
    # The mesh has no schedule, and its threshold of `redelivered` is none.
    expected = {each.name for each in registry.PRODUCT.alarms} - {"slots-missed", "redelivered"}
    stopped = {name for name in found if name.endswith("-stopped")}
    assert found.keys() - groups - stopped == expected - {"oldest-message-{number}", "{each}-stopped"}
    assert stopped == {
        f"{name}-stopped" for name in ("x-task-sweep", "x-pause-sweep", "x-fan-in-sweep", "x-dlq", "x-reconcile")
    }
    assert (found["x-sump"]["MetricName"], found["x-sump"]["Threshold"]) == ("NumberOfMessagesSent", 1)
    assert found["failure-rate"]["Threshold"] == 2.5
    assert {found[name]["Threshold"] for name in groups} == {3600}
    assert found["stuck-runs"]["Threshold"] == 3600
    assert all("asya-shop" in alarm["AlarmDescription"] for alarm in found.values())


def test_the_alarms_tell_the_receivers_when_they_go_on_and_off(shop: Any) -> None:
    for alarm in alarms(shop).values():
        assert alarm["AlarmActions"] == alarm["OKActions"]
        assert alarm["AlarmActions"][0].startswith(TOPIC)
    subscriptions = shop.resources("AWS::SNS::Subscription", "alarms")
    of_all = [each for each in subscriptions if each["TopicArn"].startswith(TOPIC)]
    assert sorted((each["Protocol"], each["Endpoint"]) for each in of_all) == [
        ("email", "ops@example.org"),
        ("email", "orders@example.org"),
        ("https", "https://events.example.org/asya"),
    ]


def test_only_critical_alarms_tell_the_pager(shop: Any) -> None:
    """One failed task is a warning, which goes to `email` and wakes nobody."""
    (pager,) = [each for each in shop.resources("AWS::SNS::Subscription", "alarms") if "pager" in each["Endpoint"]]
    assert pager["TopicArn"].startswith("<CriticalNotificationsTopic")
    paged = {name for name, alarm in alarms(shop).items() if pager["TopicArn"] in alarm["AlarmActions"]}
    assert {name for name, alarm in alarms(shop).items() if alarm["AlarmDescription"].startswith("Critical: ")} == paged
    assert {
        "function-errors",
        "failure-rate",
        "throttles",
        "oldest-message-1",
        "x-dlq-stopped",
        "x-ends-delayed",
    } <= paged
    warnings = {"x-sump", "dead-letters", "deadline-missed", "oldest-pause", "stuck-runs", "undelivered"}
    assert warnings & paged == set()
    for name in warnings:
        assert alarms(shop)[name]["AlarmDescription"].startswith("Warning: ")


def test_only_a_pager_may_be_told(tmp_path: Path) -> None:
    mesh = light_mesh(tmp_path, "notify: {critical: {topic: 'arn:aws:sns:eu-west-1:111122223333:pager'}}")
    actions = alarm_actions(Stack(App(), "Stack"), mesh)
    assert actions == {"warning": [], "critical": ["arn:aws:sns:eu-west-1:111122223333:pager"]}


def test_the_topic_is_encrypted_and_takes_messages_of_the_meshs_alarms_alone(shop: Any) -> None:
    topics = {each["TopicName"]: each["KmsMasterKeyId"] for each in shop.resources("AWS::SNS::Topic", "alarms")}
    assert topics.keys() == {"asya-shop-alarms", "asya-shop-critical-alarms"}
    assert topics["asya-shop-alarms"].startswith("<NotificationsKey")
    assert topics["asya-shop-critical-alarms"].startswith("<CriticalNotificationsKey")
    key = shop.one("AWS::KMS::Key", Description="Alarms of the mesh shop")
    assert key["EnableKeyRotation"] is True
    (use,) = [each for each in key["KeyPolicy"]["Statement"] if "Service" in each["Principal"]]
    assert use["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert use["Action"] == ["kms:Decrypt", "kms:GenerateDataKey*"]
    policy, _ = shop.resources("AWS::SNS::TopicPolicy", "alarms")
    (allowed,) = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Allow"]
    (denied,) = [each for each in policy["PolicyDocument"]["Statement"] if each["Effect"] == "Deny"]
    assert allowed["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allowed["Condition"] == {
        "ArnLike": {"aws:SourceArn": "arn:<Partition>:cloudwatch:<Region>:<AccountId>:alarm:asya-shop-*"},
        "StringEquals": {"aws:SourceAccount": "<AccountId>"},
    }
    assert denied["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize(
    ("more", "has_alarms"),
    [
        (NOBODY, False),
        ("notify: {thresholds: {failures: 3}}", False),
        (OPS, True),
        ("notify: {https: 'https://example.org/asya'}", True),
        ("notify: {topic: 'arn:aws:sns:eu-west-1:111122223333:ops'}", True),
        ("notify: {critical: {email: pager@example.org}}", True),
    ],
)
def test_a_mesh_has_alarms_if_it_tells_somebody(tmp_path: Path, more: str, has_alarms: bool) -> None:
    assert bool(mesh_alarms(light_mesh(tmp_path, more))) is has_alarms


def test_a_mesh_that_asks_for_no_alarms_and_dashboards_has_none(example: Any) -> None:
    assert not {"alarms", "dashboards"} & example.templates.keys()
    for kind in ("CloudWatch::Alarm", "CloudWatch::Dashboard", "SNS::Topic"):
        assert example.resources(f"AWS::{kind}") == []


def test_the_local_cloud_has_dashboards_but_no_alarms(plain: Any) -> None:
    assert "alarms" not in plain.templates
    assert len(plain.resources("AWS::CloudWatch::Dashboard")) == 2
    assert plain.resources("AWS::CloudWatch::Alarm") == []


def test_an_alarm_names_its_graph_if_there_are_dashboards(tmp_path: Path) -> None:
    texts = [
        next(
            each.description for each in mesh_alarms(light_mesh(tmp_path / name, more)) if each.name == "x-ends-delayed"
        )
        for name, more in (("a", OPS), ("b", f"{OPS}\ntelemetry: {{dashboards: true}}"))
    ]
    assert texts[1] == f"{texts[0]} See 'Oldest report' on the dashboard asya-shop."


def test_the_age_of_every_queue_is_watched(shop: Any) -> None:
    watched = [
        (query["MetricStat"]["Metric"]["MetricName"], dimension["Value"])
        for name, alarm in alarms(shop).items()
        if name.startswith("oldest-message-") or name.endswith("-delayed")
        for query in alarm["Metrics"]
        if "MetricStat" in query
        for dimension in query["MetricStat"]["Metric"]["Dimensions"]
        if query["MetricStat"]["Metric"]["MetricName"] == "ApproximateAgeOfOldestMessage"
    ]
    queues = {q["QueueName"] for q in shop.resources("AWS::SQS::Queue") if "RedrivePolicy" in q}
    assert sorted(watched) == sorted(("ApproximateAgeOfOldestMessage", queue) for queue in queues)


@pytest.mark.parametrize("name", REPORTS)
def test_late_reports_have_an_alarm_although_sqs_forgets_their_age(shop: Any, name: str) -> None:
    """SQS leaves messages that were received three times out of the age of the oldest one."""
    alarm = alarms(shop)[f"{name}-delayed"]
    assert alarm["Threshold"] == 120
    (expression,) = [query["Expression"] for query in alarm["Metrics"] if "Expression" in query]
    assert expression == "MAX([m0, IF(m3 == 0 AND m1 + m2 > 0, 120, 0)])"
    sources = [query["MetricStat"] for query in alarm["Metrics"] if "MetricStat" in query]
    assert [(each["Metric"]["MetricName"], each["Stat"]) for each in sources] == [
        ("ApproximateAgeOfOldestMessage", "Maximum"),
        # A message that is there in every minute, and not many that come and go.
        ("ApproximateNumberOfMessagesVisible", "Minimum"),
        ("ApproximateNumberOfMessagesNotVisible", "Minimum"),
        ("NumberOfMessagesDeleted", "Sum"),
    ]
    assert {each["Metric"]["Dimensions"][0]["Value"] for each in sources} == {f"asya-shop-{name}"}


@pytest.mark.parametrize("name", REPORTS)
def test_dead_letters_of_reports_tell_people(shop: Any, name: str) -> None:
    alarm = alarms(shop)[f"{name}-dead-letters"]
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Threshold"]) == (
        "ApproximateNumberOfMessagesVisible", "Maximum", 1,
    )  # fmt: skip
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": f"asya-shop-{name}-dlq"}]
    assert alarm["AlarmActions"][0].startswith(TOPIC)


def test_every_function_without_a_queue_is_watched(shop: Any) -> None:
    functions = {f["FunctionName"] for f in shop.resources("AWS::Lambda::Function")}
    fed = {each["FunctionName"] for each in shop.resources("AWS::Lambda::EventSourceMapping")}
    watched = {
        dimension["Value"]
        for query in alarms(shop)["function-errors"]["Metrics"]
        if "MetricStat" in query
        for dimension in query["MetricStat"]["Metric"]["Dimensions"]
    }
    queues = {q["QueueName"] for q in shop.resources("AWS::SQS::Queue")}
    # CloudFormation waits for the answer of x-roles: its failure fails the deployment. Operators see that of a read.
    unwatched = {f"asya-shop-{name}" for name in ("x-roles", "x-operations")}
    assert watched == {name for name in functions if name not in queues} - unwatched
    assert fed


@pytest.mark.rule("15.Sweeps")
def test_a_sweep_that_stops_goes_off_by_missing_data(shop: Any) -> None:
    stopped = [alarm for name, alarm in alarms(shop).items() if name.endswith("-stopped")]
    functions = {f["FunctionName"] for f in shop.resources("AWS::Lambda::Function")}
    for alarm in stopped:
        assert alarm["TreatMissingData"] == "breaching"
        assert alarm["ComparisonOperator"] == "LessThanThreshold"
        assert (alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"], alarm["Period"]) == (3, 3, 300)
        (actor,) = [each["Value"] for each in alarm["Dimensions"] if each["Name"] == "actor"]
        assert f"asya-shop-{runner_of(actor)}" in functions
    others = [alarm for name, alarm in alarms(shop).items() if not name.endswith("-stopped")]
    assert {alarm["TreatMissingData"] for alarm in others} == {"notBreaching"}


def test_expressions_use_their_metrics_and_no_search(shop: Any) -> None:
    for name, alarm in alarms(shop).items():
        if "Metrics" in alarm:
            (expression,) = [query["Expression"] for query in alarm["Metrics"] if "Expression" in query]
            sources = {query["Id"] for query in alarm["Metrics"] if "MetricStat" in query}
            assert set(re.findall(r"m\d+", expression)) == sources, name
            assert "SEARCH" not in expression
            assert len(sources) <= MAX_METRICS, name


def test_a_threshold_of_none_removes_its_alarm(tmp_path: Path) -> None:
    every = {alarm.name for alarm in mesh_alarms(light_mesh(tmp_path / "a"))}
    off = ", ".join(f"{key}: none" for key in registry.PRODUCT.thresholds)
    assert "failure-rate" in every
    assert mesh_alarms(light_mesh(tmp_path / "b", f"notify: {{email: ops@example.org, thresholds: {{{off}}}}}")) == []


def test_missed_slots_have_an_alarm_in_a_mesh_with_schedules(tmp_path: Path) -> None:
    schedule = f'{OPS}\ntriggers: {{n: {{route: [a], cron: "0 2 * * *"}}}}'
    (alarm,) = [each for each in mesh_alarms(light_mesh(tmp_path / "a", schedule)) if each.name == "slots-missed"]
    assert ([source.metric for source in alarm.sources], alarm.threshold) == (["SlotsMissed"], 1)
    off = schedule.replace("}", ", thresholds: {slots_missed: none}}", 1)
    event = f"{OPS}\ntriggers: {{n: {{route: [a], event: {{source: shop}}}}}}"
    others = [mesh_alarms(light_mesh(tmp_path / name, more)) for name, more in (("b", off), ("c", event))]
    assert not [each for alarms in others for each in alarms if each.name == "slots-missed"]


@pytest.mark.rule("11.pause.longest")
@pytest.mark.parametrize(
    ("more", "days"),
    [
        (OPS, 21),
        ("notify: {email: ops@example.org, thresholds: {oldest_pause: 2d}}", 2),
        (f"{OPS}\nstorage: {{retention: {{tasks: 10d}}}}", 6.75),
    ],
)
def test_the_alarm_for_pauses_goes_off_before_the_longest_one_ends(tmp_path: Path, more: str, days: float) -> None:
    (alarm,) = [alarm for alarm in mesh_alarms(light_mesh(tmp_path, more)) if alarm.name == "oldest-pause"]
    assert alarm.threshold == days * 86_400


def test_alarms_grow_by_one_for_ten_queues(tmp_path: Path) -> None:
    few, many = mesh_of(tmp_path / "few", 6), mesh_of(tmp_path / "many", 300)
    groups = [sum(alarm.name.startswith("oldest-message") for alarm in mesh_alarms(mesh)) for mesh in (few, many)]
    assert groups == [-(-len(queue_actors(mesh.table)) // MAX_METRICS) for mesh in (few, many)]
    assert len(mesh_alarms(many)) - groups[1] == len(mesh_alarms(few)) - groups[0]
    assert len(unqueued_functions(many)) <= MAX_METRICS
    for alarm in mesh_alarms(many):
        assert len(alarm.description) <= 1024


def test_functions_without_a_queue_that_one_alarm_cannot_watch_have_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CloudWatch refuses an alarm with more than ten metrics. Only capabilities of its own give a mesh so many functions."""
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "heavy.py").write_text("def heavy(spark, payload): return payload\n")
    more = (
        "  h: {spark: {job: heavy.heavy}}\n  ask: {kind: pause}\n  gather: {kind: fan_in}\n"
        "jobs: jobs\ntools: {t: {route: [a]}}\ngateway: {streaming: adapter}\n"
        f"triggers: {{n: {{route: [a], webhook: {{secret: shop/github, signature: github}}}}}}\n{OPS}"
    )
    mesh = light_mesh(tmp_path / "a", more.replace("jobs: jobs", "jobs: ../jobs"))
    functions = unqueued_functions(mesh)
    monkeypatch.setattr("asya_infra.constructs.observability.mesh_alarms.MAX_METRICS", len(functions) - 1)
    found = [alarm for alarm in mesh_alarms(mesh) if alarm.name.startswith("function-errors")]
    assert [alarm.name for alarm in found] == ["function-errors", "function-errors-2"]
    watched = [source.dimensions["FunctionName"] for alarm in found for source in alarm.sources]
    assert watched == [f"asya-shop-{name}" for name in functions]
    assert all(len(alarm.sources) < len(functions) for alarm in found)


def test_the_page_has_each_alarm_with_a_first_step_and_each_threshold(shop: Any) -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.as_page(), "run `python -m asya_infra.constructs.observability.page`"
    names = {re.sub(r"-\d+$", "-{n}", re.sub(r"^x-.*-stopped", "{sweep}-stopped", name)) for name in alarms(shop)}
    for name in names:
        assert re.search(rf"^\| `{re.escape(name)}` \| .* \| [^|]+ \|$", written, re.MULTILINE), name
    for threshold in ThresholdsSection.__struct_fields__:
        assert f"\n| `{threshold}` |" in written
