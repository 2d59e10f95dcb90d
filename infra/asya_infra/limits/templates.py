"""Checks synthesized templates against the limits of AWS. Pure."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from asya_infra.assembly import Template
from asya_infra.limits import aws_limits as limits
from asya_infra.limits.aws_limits import Limit, Violation
from asya_infra.limits.rendering import policy_length, render

_ROLE, _POLICY, _FUNCTION = "AWS::IAM::Role", "AWS::IAM::ManagedPolicy", "AWS::Lambda::Function"
_QUEUE, _SOURCE, _ALARM = "AWS::SQS::Queue", "AWS::Lambda::EventSourceMapping", "AWS::CloudWatch::Alarm"
_QUEUE_POLICY, _BUCKET = "AWS::SQS::QueuePolicy", "AWS::S3::Bucket"
_TOPIC_POLICY, _KEY, _BUCKET_POLICY = "AWS::SNS::TopicPolicy", "AWS::KMS::Key", "AWS::S3::BucketPolicy"
_SUBSCRIPTION = "AWS::SNS::Subscription"
_PERMISSION, _TABLE, _PARAMETER = "AWS::Lambda::Permission", "AWS::DynamoDB::Table", "AWS::SSM::Parameter"
_AUTHORIZER = "AWS::ApiGatewayV2::Authorizer"
_RULE, _DASHBOARD, _APPLICATION = "AWS::Events::Rule", "AWS::CloudWatch::Dashboard", "AWS::EMRServerless::Application"


@dataclass(frozen=True)
class Resource:
    """A resource of a template.

    Attributes:
        stack: the name of its stack.
        id: its logical id in the stack.
        path: its path in the app, without the names of the CDK's own children.
        properties: its properties, with intrinsic functions.
    """

    stack: str
    id: str
    path: str
    kind: str
    properties: Mapping[str, Any]


def check(templates: Mapping[str, Template], sizes: Mapping[str, int]) -> list[Violation]:
    """Return the violations of all templates of a mesh.

    Args:
        templates: the templates by the name of the stack.
        sizes: the sizes of the template files in bytes by the name of the stack.
    """
    resources = [resource for stack, template in templates.items() for resource in _resources(stack, template)]
    return [
        *(violation for stack in templates for violation in _stack(stack, templates[stack], sizes[stack])),
        *(violation for resource in resources for violation in _CHECKS.get(resource.kind, _nothing)(resource)),
        *(violation for resource in resources for violation in (*_names(resource), *_tags(resource))),
        *_parts(resources),
        *_sums(resources),
        *_event_sources(resources),
    ]


def _resources(stack: str, template: Template) -> Iterator[Resource]:
    for name, resource in template.get("Resources", {}).items():
        path = resource.get("Metadata", {}).get("aws:cdk:path", f"{stack}/{name}").removesuffix("/Resource")
        yield Resource(stack, name, path, resource["Type"], resource.get("Properties", {}))


# A deployed mesh keeps its number of shards (`asya_infra.deployment.removed_queues`).
_SPREAD = "Set `shards: 8` before the first deployment; spread the actors of a deployed mesh over two meshes."


def _stack(stack: str, template: Template, size: int) -> Iterator[Violation]:
    counts = (
        (len(stack), limits.NAME_OF_A_STACK, "Shorten the namespace or the stage."),
        (size, limits.TEMPLATE, _SPREAD),
        (len(template.get("Resources", {})), limits.RESOURCES_OF_A_STACK, _SPREAD),
        (len(template.get("Outputs", {})), limits.OUTPUTS_OF_A_STACK, "Remove outputs."),
        (len(template.get("Parameters", {})), limits.PARAMETERS_OF_A_STACK, "Remove parameters."),
    )
    for value, limit, advice in counts:
        if value > limit.usable:
            yield Violation(stack, "", value, limit, advice)


def _over(resource: Resource, value: int, limit: Limit, advice: str) -> Iterator[Violation]:
    if value > limit.usable:
        yield Violation(resource.stack, resource.path, value, limit, advice)


def _role(role: Resource) -> Iterator[Violation]:
    documents = [policy["PolicyDocument"] for policy in role.properties.get("Policies", [])]
    inline = sum(map(policy_length, documents))
    yield from _over(role, inline, limits.ROLE_INLINE_POLICIES, "Use fewer entries in `access`, or shorter patterns.")
    attached = len(role.properties.get("ManagedPolicyArns", []))
    yield from _over(role, attached, limits.MANAGED_POLICIES_OF_A_ROLE, "Set `can_send_to` to fewer actors.")
    trust = policy_length(role.properties.get("AssumeRolePolicyDocument", {}))
    yield from _over(role, trust, limits.TRUST_POLICY, "Shorten the trust policy.")


def _managed_policy(policy: Resource) -> Iterator[Violation]:
    length = policy_length(policy.properties["PolicyDocument"])
    yield from _over(policy, length, limits.MANAGED_POLICY, "Use fewer entries in `access`, or shorter patterns.")


def _function(function: Resource) -> Iterator[Violation]:
    variables = render(function.properties.get("Environment", {}).get("Variables", {}))
    size = len(json.dumps(variables, separators=(",", ":"), ensure_ascii=False).encode())
    yield from _over(function, size, limits.ENVIRONMENT, "Shorten `env` of the actor.")
    yield from _over(
        function, int(function.properties.get("Timeout", 3)), limits.FUNCTION_TIMEOUT, "Shorten `timeout`."
    )
    yield from _over(function, len(function.properties.get("Layers", [])), limits.LAYERS, "Use fewer layers.")


def _queue(queue: Resource) -> Iterator[Violation]:
    visibility = int(queue.properties.get("VisibilityTimeout", 30))
    yield from _over(queue, visibility, limits.VISIBILITY_TIMEOUT, "Shorten `timeout` or `batch.window`.")


def _queue_policy(policy: Resource) -> Iterator[Violation]:
    length = policy_length(policy.properties["PolicyDocument"])
    yield from _over(policy, length, limits.QUEUE_POLICY, "Shorten the namespace.")
    statements = len(policy.properties["PolicyDocument"]["Statement"])
    yield from _over(policy, statements, limits.STATEMENTS_OF_A_QUEUE, "Let fewer services send to the queue.")


def _topic_policy(policy: Resource) -> Iterator[Violation]:
    document = policy.properties["PolicyDocument"]
    yield from _over(policy, policy_length(document), limits.TOPIC_POLICY, "Let fewer callers publish.")
    yield from _over(policy, len(document["Statement"]), limits.STATEMENTS_OF_A_TOPIC, "Let fewer callers publish.")


def _key(key: Resource) -> Iterator[Violation]:
    yield from _over(
        key, policy_length(key.properties["KeyPolicy"]), limits.KEY_POLICY, "Let fewer callers use the key."
    )


def _bucket_policy(policy: Resource) -> Iterator[Violation]:
    length = policy_length(policy.properties["PolicyDocument"])
    yield from _over(policy, length, limits.BUCKET_POLICY, "Let fewer callers use the bucket.")


def _bucket(bucket: Resource) -> Iterator[Violation]:
    count = len(bucket.properties.get("NotificationConfiguration", {}).get("QueueConfigurations", []))
    yield from _over(bucket, count, limits.NOTIFICATIONS_OF_A_BUCKET, "Give triggers common prefixes.")
    rules = len(bucket.properties.get("LifecycleConfiguration", {}).get("Rules", []))
    yield from _over(bucket, rules, limits.LIFECYCLE_RULES, "Use fewer prefixes with a retention.")


def _table(table: Resource) -> Iterator[Violation]:
    indexes = len(table.properties.get("GlobalSecondaryIndexes", []))
    yield from _over(table, indexes, limits.INDEXES_OF_A_TABLE, "Declare fewer indexes.")


def _parameter(parameter: Resource) -> Iterator[Violation]:
    size = len(str(render(parameter.properties.get("Value", ""))).encode())
    yield from _over(parameter, size, limits.PARAMETER_VALUE, "Shorten the value.")


def _authorizer(authorizer: Resource) -> Iterator[Violation]:
    audiences = len(authorizer.properties.get("JwtConfiguration", {}).get("Audience", []))
    yield from _over(authorizer, audiences, limits.AUDIENCES, "Shorten `gateway.jwt.audience`.")


def _alarm(alarm: Resource) -> Iterator[Violation]:
    queries = [each for each in alarm.properties.get("Metrics", []) if "MetricStat" in each]
    yield from _over(alarm, len(queries), limits.METRICS_OF_AN_ALARM, "Split the alarm.")
    for key in ("AlarmActions", "OKActions", "InsufficientDataActions"):
        yield from _over(alarm, len(alarm.properties.get(key, [])), limits.ACTIONS_OF_AN_ALARM, "Tell fewer topics.")
    description = len(str(render(alarm.properties.get("AlarmDescription", ""))))
    yield from _over(alarm, description, limits.DESCRIPTION_OF_AN_ALARM, "Shorten the description.")
    period = max([int(alarm.properties.get("Period", 0)), *(int(each["MetricStat"]["Period"]) for each in queries)])
    limit = limits.SECONDS_OF_AN_ALARM if period < _HOUR else limits.SECONDS_OF_A_SLOW_ALARM
    looks_at = period * int(alarm.properties.get("EvaluationPeriods", 1))
    yield from _over(alarm, looks_at, limit, "Shorten the threshold in `notify.thresholds`.")


def _dashboard(dashboard: Resource) -> Iterator[Violation]:
    body = json.loads(str(render(dashboard.properties["DashboardBody"])))
    widgets = body.get("widgets", [])
    metrics = sum(len(widget.get("properties", {}).get("metrics", [])) for widget in widgets)
    yield from _over(dashboard, metrics, limits.METRICS_OF_A_DASHBOARD, "Show fewer metrics.")
    largest = max((len(widget.get("properties", {}).get("metrics", [])) for widget in widgets), default=0)
    yield from _over(dashboard, largest, limits.METRICS_OF_A_WIDGET, "Split the widget.")
    yield from _over(dashboard, len(widgets), limits.WIDGETS_OF_A_DASHBOARD, "Show fewer widgets.")


def _application(application: Resource) -> Iterator[Violation]:
    runs = int(application.properties.get("SchedulerConfiguration", {}).get("MaxConcurrentRuns", 1))
    advice = "Set `spark.application.max_vcpu` or the sizes of the jobs."
    yield from _over(application, runs, limits.CONCURRENT_RUNS, advice)
    idle = int(application.properties.get("AutoStopConfiguration", {}).get("IdleTimeoutMinutes", 15))
    yield from _over(application, idle, limits.IDLE_MINUTES, "Shorten `spark.application.idle_stop`.")


def _rule(rule: Resource) -> Iterator[Violation]:
    length = policy_length(rule.properties.get("EventPattern", {}))
    yield from _over(rule, length, limits.EVENT_PATTERN, "Shorten the `event.pattern` of the trigger, or split it.")
    targets = len(rule.properties.get("Targets", []))
    yield from _over(rule, targets, limits.TARGETS_OF_A_RULE, "Use a rule for each five targets.")


def _subscription(subscription: Resource) -> Iterator[Violation]:
    combinations = math.prod(len(values) for values in subscription.properties.get("FilterPolicy", {}).values())
    advice = "Give other actors another address under `pause.notify`."
    yield from _over(subscription, combinations, limits.FILTER_COMBINATIONS, advice)


def _nothing(_: Resource) -> Iterator[Violation]:
    return iter(())


_CHECKS: Mapping[str, Callable[[Resource], Iterator[Violation]]] = {
    _ROLE: _role,
    _POLICY: _managed_policy,
    _FUNCTION: _function,
    _QUEUE: _queue,
    _QUEUE_POLICY: _queue_policy,
    _TOPIC_POLICY: _topic_policy,
    _SUBSCRIPTION: _subscription,
    _KEY: _key,
    _BUCKET: _bucket,
    _BUCKET_POLICY: _bucket_policy,
    _TABLE: _table,
    _PARAMETER: _parameter,
    _AUTHORIZER: _authorizer,
    _ALARM: _alarm,
    _DASHBOARD: _dashboard,
    _APPLICATION: _application,
    _RULE: _rule,
}


_HOUR = 3_600
_SHORTER = "Shorten the namespace or the name of the actor."
_NAMES: Mapping[str, tuple[str, Limit]] = {
    _ROLE: ("RoleName", limits.NAME_OF_A_ROLE),
    _POLICY: ("ManagedPolicyName", limits.NAME_OF_A_POLICY),
    _FUNCTION: ("FunctionName", limits.NAME_OF_A_FUNCTION),
    _QUEUE: ("QueueName", limits.NAME_OF_A_QUEUE),
    _ALARM: ("AlarmName", limits.NAME_OF_AN_ALARM),
    _RULE: ("Name", limits.NAME_OF_A_RULE),
    _BUCKET: ("BucketName", limits.NAME_OF_A_BUCKET),
    _TABLE: ("TableName", limits.NAME_OF_A_TABLE),
    _DASHBOARD: ("DashboardName", limits.NAME_OF_A_DASHBOARD),
    _APPLICATION: ("Name", limits.NAME_OF_AN_APPLICATION),
    "AWS::SNS::Topic": ("TopicName", limits.NAME_OF_A_TOPIC),
    "AWS::Logs::LogGroup": ("LogGroupName", limits.NAME_OF_A_LOG_GROUP),
    "AWS::ApiGatewayV2::Api": ("Name", limits.NAME_OF_AN_API),
}


def _names(resource: Resource) -> Iterator[Violation]:
    key, limit = _NAMES.get(resource.kind, ("", limits.NAME_OF_A_STACK))
    yield from _over(resource, len(str(render(resource.properties.get(key, "")))), limit, _SHORTER)


def _tags(resource: Resource) -> Iterator[Violation]:
    """Check the tags, a list or a mapping."""
    yield from _over(resource, len(resource.properties.get("Tags") or ()), limits.TAGS, "Set fewer `tags`.")


_PARTS: Mapping[str, tuple[str, Limit]] = {
    "AWS::ApiGatewayV2::Route": ("ApiId", limits.ROUTES_OF_AN_API),
    "AWS::ApiGatewayV2::Integration": ("ApiId", limits.INTEGRATIONS_OF_AN_API),
    _AUTHORIZER: ("ApiId", limits.AUTHORIZERS_OF_AN_API),
    "AWS::ApiGateway::Resource": ("RestApiId", limits.RESOURCES_OF_A_REST_API),
}
"""The resources that are parts of another one: the property that names it, and how many it may have."""
_SENTENCE = len('{"Sid":"","Effect":"Allow","Principal":{"Service":""},"Action":"","Resource":"","Condition":{}}')


def _parts(resources: list[Resource]) -> Iterator[Violation]:
    """Check what many resources put into one: routes into an API, and statements into the policy of a function."""
    parts: dict[tuple[str, str, str], list[Resource]] = {}
    for part in resources:
        if part.kind in (*_PARTS, _PERMISSION):
            key = "FunctionName" if part.kind == _PERMISSION else _PARTS[part.kind][0]
            owner = json.dumps(part.properties.get(key), sort_keys=True)
            parts.setdefault((part.stack, part.kind, owner), []).append(part)
    for (_, kind, _), members in parts.items():
        first = members[0]
        if kind == _PERMISSION:
            size = sum(map(_statement_size, members))
            yield from _over(first, size, limits.FUNCTION_POLICY, "Let one statement allow more calls.")
        else:
            yield from _over(first, len(members), _PARTS[kind][1], "Declare fewer calls.")


def _statement_size(permission: Resource) -> int:
    """Return the bytes of the statement that a permission puts into the policy of a function, about."""
    values = [render(value) for value in permission.properties.values()]
    # Lambda names the statement by the stack and the logical id, and the condition by the key.
    return _SENTENCE + len(permission.stack) + len(permission.id) + sum(len(str(value)) for value in values) + 80


def _sums(resources: list[Resource]) -> Iterator[Violation]:
    """Check what all stacks of the mesh need of the account together, if the mesh is alone in it."""
    stack = resources[0].stack if resources else ""
    reserved = sum(int(r.properties.get("ReservedConcurrentExecutions") or 0) for r in resources if r.kind == _FUNCTION)
    kinds = (
        (_ROLE, limits.ROLES_OF_AN_ACCOUNT),
        (_POLICY, limits.MANAGED_POLICIES_OF_AN_ACCOUNT),
        (_ALARM, limits.ALARMS_OF_AN_ACCOUNT),
        (_RULE, limits.RULES_OF_AN_ACCOUNT),
    )
    for kind, limit in kinds:
        count = sum(resource.kind == kind for resource in resources)
        if count > limit.usable:
            yield Violation(
                stack, "the mesh", count, limit, "Ask for a higher quota, or spread the actors over accounts."
            )
    provisioned = sum(
        int(r.properties.get("ProvisionedConcurrencyConfig", {}).get("ProvisionedConcurrentExecutions", 0))
        for r in resources
        if r.kind == "AWS::Lambda::Alias"
    )
    reserved = max(reserved, provisioned)
    limit = limits.CONCURRENCY_OF_AN_ACCOUNT
    if reserved > limit.value - limits.UNRESERVED_CONCURRENCY.value:
        advice = f"Reserve less: {limits.UNRESERVED_CONCURRENCY.value} stay unreserved in an account."
        yield Violation(stack, "the mesh", reserved, limit, advice)


def _event_sources(resources: list[Resource]) -> Iterator[Violation]:
    """Check each event source, with its queue and its function: concurrency, and the visibility timeout."""
    functions = [resource for resource in resources if resource.kind == _FUNCTION]
    by_id = {(function.stack, function.id): function for function in functions}
    by_name = {_name(function, "FunctionName"): function for function in functions}
    queues = {_name(r, "QueueName"): r for r in resources if r.kind == _QUEUE}
    for source in resources:
        if source.kind != _SOURCE:
            continue
        concurrency = source.properties.get("ScalingConfig", {}).get("MaximumConcurrency")
        if concurrency is not None:
            yield from _over(source, concurrency, limits.MOST_SOURCE_CONCURRENCY, "Set a lower `concurrency`.")
            if concurrency < limits.LEAST_SOURCE_CONCURRENCY.value:
                least = limits.LEAST_SOURCE_CONCURRENCY
                yield Violation(
                    source.stack, source.path, concurrency, least, "Set a higher `concurrency`.", least=True
                )
        name = str(render(source.properties.get("EventSourceArn", ""))).rpartition(":")[2]
        target = source.properties.get("FunctionName")
        reference = str(target.get("Ref")) if isinstance(target, dict) else ""
        # A reference to an alias is none to a function; then the queue has the name of the function.
        function = by_id.get((source.stack, reference))
        queue, function = queues.get(name), function or by_name.get(name)
        if queue is None or function is None:
            continue
        needed = int(function.properties.get("Timeout", 3)) + int(
            source.properties.get("MaximumBatchingWindowInSeconds") or 0
        )
        visibility = int(queue.properties.get("VisibilityTimeout", 30))
        if visibility < needed:
            limit = Limit(needed, "seconds of a visibility timeout", limits.VISIBILITY_TIMEOUT.source)
            advice = "Messages reappear while Lambda gathers or handles them."
            yield Violation(queue.stack, queue.path, visibility, limit, advice, least=True)


def _name(resource: Resource, key: str) -> str:
    return str(render(resource.properties.get(key, "")))
