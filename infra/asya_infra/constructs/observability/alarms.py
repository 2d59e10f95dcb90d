"""CloudWatch alarms of a mesh, and the topics with their receivers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from aws_cdk import Aws
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from constructs import Construct

from asya.monitoring import Severity
from asya.protocol import names
from asya_infra.constructs.encryption import encrypted_topic, subscription_id
from asya_infra.constructs.undelivered import undelivered_notifications
from asya_infra.limits.aws_limits import METRICS_OF_AN_ALARM
from asya_infra.mesh import Mesh
from asya_infra.mesh_file.notify_model import ReceiversSection

PERIOD = 300
MAX_METRICS = METRICS_OF_AN_ALARM.usable


@dataclass(frozen=True, kw_only=True)
class MetricSource:
    """One metric with its dimensions, as an alarm reads it."""

    namespace: str
    metric: str
    statistic: str
    dimensions: dict[str, str] = field(default_factory=dict)


def queue_metric(queue: str, metric: str, statistic: str) -> MetricSource:
    """Return a metric of a queue by the queue's name."""
    return MetricSource(namespace="AWS/SQS", metric=metric, statistic=statistic, dimensions={"QueueName": queue})


@dataclass(frozen=True, kw_only=True)
class Alarm:
    """An alarm.

    Attributes:
        name: the name without the prefix of the mesh.
        description: what happened, and where to look.
        sources: the metrics; one without an expression.
        expression: metric math over the sources, whose ids are m0, m1 and so on.
        threshold: the value from which the alarm is on; below it, if `needs_data`.
        period: seconds.
        periods: how many periods the alarm looks at, and in how many of them the value must be bad.
        needs_data: whether missing data means trouble, as for a heartbeat.
        severity: who is told (`alarm_actions`).
    """

    name: str
    description: str
    sources: tuple[MetricSource, ...]
    expression: str = ""
    threshold: float
    period: int = PERIOD
    periods: tuple[int, int] = (1, 1)
    needs_data: bool = False
    severity: Severity = "warning"


def add_alarm(scope: Construct, namespace: str, alarm: Alarm, actions: Sequence[str]) -> None:
    """Add an alarm.

    Args:
        scope: the parent construct.
        namespace: the namespace of the mesh with its stage.
        alarm: the alarm.
        actions: ARNs of topics to tell when the alarm goes on or off.
    """
    periods, bad_periods = alarm.periods
    made = cloudwatch.CfnAlarm(
        scope,
        _construct_id(alarm.name),
        alarm_name=f"asya-{namespace}-{alarm.name}",
        alarm_description=alarm.description,
        evaluation_periods=periods,
        datapoints_to_alarm=bad_periods,
        threshold=alarm.threshold,
        comparison_operator="LessThanThreshold" if alarm.needs_data else "GreaterThanOrEqualToThreshold",
        treat_missing_data="breaching" if alarm.needs_data else "notBreaching",
        alarm_actions=list(actions) or None,
        ok_actions=list(actions) or None,
    )
    if alarm.expression:
        made.metrics = [
            cloudwatch.CfnAlarm.MetricDataQueryProperty(id="value", expression=alarm.expression, return_data=True),
            *(_query(f"m{number}", source, alarm.period) for number, source in enumerate(alarm.sources)),
        ]
        return
    (source,) = alarm.sources
    made.namespace, made.metric_name, made.statistic = source.namespace, source.metric, source.statistic
    made.period = alarm.period
    made.dimensions = [
        cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value) for name, value in source.dimensions.items()
    ]


def _query(query_id: str, source: MetricSource, period: int) -> cloudwatch.CfnAlarm.MetricDataQueryProperty:
    return cloudwatch.CfnAlarm.MetricDataQueryProperty(
        id=query_id,
        return_data=False,
        metric_stat=cloudwatch.CfnAlarm.MetricStatProperty(
            metric=cloudwatch.CfnAlarm.MetricProperty(
                namespace=source.namespace,
                metric_name=source.metric,
                dimensions=[
                    cloudwatch.CfnAlarm.DimensionProperty(name=name, value=value)
                    for name, value in source.dimensions.items()
                ],
            ),
            period=period,
            stat=source.statistic,
        ),
    )


def _construct_id(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-")) + "Alarm"


def alarm_actions(scope: Construct, mesh: Mesh) -> dict[Severity, list[str]]:
    """Return the ARNs of the topics that alarms of each severity tell. A topic exists or is added; none without receivers."""
    notify = mesh.file.notify
    every = _action(scope, mesh, notify, "Notifications", "alarms")
    critical = _action(scope, mesh, notify.critical, "CriticalNotifications", "critical-alarms")
    return {"warning": every, "critical": list(dict.fromkeys((*every, *critical)))}


def _action(scope: Construct, mesh: Mesh, receivers: ReceiversSection, construct_id: str, name: str) -> list[str]:
    if receivers.topic is not None:
        return [receivers.topic]
    if not (receivers.email or receivers.https):
        return []
    return [_topic(Construct(scope, construct_id), mesh, receivers, name).topic_arn]


def _topic(construct: Construct, mesh: Mesh, named: ReceiversSection, name: str) -> sns.Topic:
    # Alarms have no data of envelopes, and must arrive when the customer managed key is disabled: the topic keeps its own key.
    # The key has no conditions: the form that AWS documents for alarms has none.
    topic = encrypted_topic(
        construct,
        names.resource_name(mesh.namespace, name),
        f"{name.replace('-', ' ').capitalize()} of the mesh {mesh.namespace}",
        "cloudwatch.amazonaws.com",
        conditions={
            "ArnLike": {"aws:SourceArn": mesh.addresses.arn("cloudwatch", f"alarm:asya-{mesh.namespace}-*")},
            "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
        },
    )
    receivers = {
        **dict.fromkeys(named.email, "email"),
        **dict.fromkeys(named.https, "https"),
    }
    for endpoint, protocol in receivers.items():
        sns.CfnSubscription(
            construct,
            subscription_id(endpoint),
            topic_arn=topic.topic_arn,
            protocol=protocol,
            endpoint=endpoint,
            redrive_policy=undelivered_notifications(mesh),
        )
    return topic
