"""What a synthesized mesh asks of an account."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from asya_infra.assembly import BOOTSTRAP_PARAMETER, Assembly

Kind = Literal["table", "bucket", "queue", "log group"]

# The resources that survive their stack, or that may exist without it, and the property with their name.
_NAMED: Mapping[str, tuple[Kind, str]] = {
    "AWS::DynamoDB::Table": ("table", "TableName"),
    "AWS::S3::Bucket": ("bucket", "BucketName"),
    "AWS::SQS::Queue": ("queue", "QueueName"),
    "AWS::Logs::LogGroup": ("log group", "LogGroupName"),
}
NAMED_KINDS: Mapping[str, Kind] = {resource: kind for resource, (kind, _) in _NAMED.items()}
ROLE, MANAGED_POLICY = "AWS::IAM::Role", "AWS::IAM::ManagedPolicy"

_JOBS = "emr-serverless.amazonaws.com"

# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
_EXECUTIONS_PER_POLLER = 10


@dataclass(frozen=True, order=True)
class NamedResource:
    """A resource with a name of its own: a second one of the same name cannot be created."""

    kind: Kind
    name: str


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What a mesh asks of an account.

    Attributes:
        namespace: the namespace with its stage.
        account, region: where the stacks go; None if the credentials decide.
        stacks: the names of the stacks.
        bootstrap_version: the lowest version of `cdk bootstrap` that can deploy the stacks.
        reserved: the reserved concurrency by function.
        provisioned: the provisioned concurrency of all functions.
        source_concurrency: how many concurrent executions the queues with a limit may start, together.
        in_flight: how many messages of a queue its function may handle at once, by queue.
        max_vcpu: the capacity of the mesh's own Spark application; None without one.
        roles, policies: the number of IAM roles and of managed policies.
        runs_jobs: whether job runs read their code in the bucket of `cdk bootstrap`.
        kms_key: the customer managed key of the tables and of all other data; None without one.
        sends_events: whether EventBridge sends to queues or topics of the mesh.
        sends_to_topics: whether EventBridge sends to topics of the mesh.
        redrives: whether SNS sends to a queue of the mesh what it could not deliver.
        sends_objects: whether S3 sends to a queue of the mesh.
        event_buckets: the buckets of others whose events start tasks.
        event_buses: the event buses that have rules of the mesh, without the default one.
        resources: the resources that must not exist outside the stacks. Names may contain `{account}` and `{region}`.
    """

    namespace: str
    account: str | None = None
    region: str | None = None
    stacks: tuple[str, ...] = ()
    bootstrap_parameter: str = BOOTSTRAP_PARAMETER
    bootstrap_version: int = 0
    reserved: Mapping[str, int]
    provisioned: int = 0
    source_concurrency: int = 0
    in_flight: Mapping[str, int] = field(default_factory=dict)
    max_vcpu: int | None = None
    roles: int = 0
    policies: int = 0
    runs_jobs: bool = False
    kms_key: str | None = None
    sends_events: bool = False
    sends_to_topics: bool = False
    redrives: bool = False
    sends_objects: bool = False
    event_buckets: tuple[str, ...] = ()
    event_buses: tuple[str, ...] = ()
    resources: tuple[NamedResource, ...] = ()

    @property
    def bootstrap_qualifier(self) -> str:
        """The qualifier of `cdk bootstrap`, which the names of its resources contain."""
        return self.bootstrap_parameter.split("/")[2]

    def named(self, account: str, region: str) -> frozenset[NamedResource]:
        """Return the resources with their names in an account and region."""
        return frozenset(
            NamedResource(each.kind, each.name.replace("{account}", account).replace("{region}", region))
            for each in self.resources
        )


def demand_of(assembly: Assembly) -> Demand:
    """Compute the demand of a synthesized mesh."""
    resources = [each for template in assembly.templates.values() for each in template.get("Resources", {}).values()]
    return Demand(
        namespace=assembly.namespace,
        account=assembly.account,
        region=assembly.region,
        stacks=tuple(sorted(assembly.templates)),
        bootstrap_parameter=assembly.bootstrap_parameter,
        bootstrap_version=assembly.bootstrap_version,
        reserved={
            text(each.get("FunctionName", "")): int(reserved)
            for each in _of(resources, "AWS::Lambda::Function")
            if (reserved := each.get("ReservedConcurrentExecutions"))
        },
        provisioned=sum(
            int(each.get("ProvisionedConcurrencyConfig", {}).get("ProvisionedConcurrentExecutions", 0))
            for each in _of(resources, "AWS::Lambda::Alias")
        ),
        source_concurrency=sum(map(_concurrency, _of(resources, "AWS::Lambda::EventSourceMapping"))),
        in_flight={
            text(each.get("EventSourceArn", "")).rpartition(":")[2]: concurrency * int(each.get("BatchSize", 10))
            for each in _of(resources, "AWS::Lambda::EventSourceMapping")
            if (concurrency := _concurrency(each))
        },
        max_vcpu=next(
            (
                int(float(each["MaximumCapacity"]["Cpu"].split()[0]))
                for each in _of(resources, "AWS::EMRServerless::Application")
                if "MaximumCapacity" in each
            ),
            None,
        ),
        roles=len(list(_of(resources, ROLE))),
        policies=len(list(_of(resources, MANAGED_POLICY))),
        runs_jobs=any(_JOBS in str(each.get("AssumeRolePolicyDocument")) for each in _of(resources, ROLE)),
        kms_key=next(
            (
                key
                for each in _of(resources, "AWS::DynamoDB::Table")
                if (key := each.get("SSESpecification", {}).get("KMSMasterKeyId"))
            ),
            None,
        ),
        # A rule names a function by its attribute, a queue by its computed ARN, a topic by its reference.
        sends_events=any(
            "Fn::GetAtt" not in target["Arn"]
            for each in _of(resources, "AWS::Events::Rule")
            for target in each.get("Targets", [])
        ),
        sends_to_topics=any(
            "Ref" in target["Arn"] for each in _of(resources, "AWS::Events::Rule") for target in each.get("Targets", [])
        ),
        redrives=any("RedrivePolicy" in each for each in _of(resources, "AWS::SNS::Subscription")),
        sends_objects=any(
            "QueueConfigurations" in each.get("NotificationConfiguration", {})
            for each in _of(resources, "AWS::S3::Bucket")
        ),
        event_buckets=tuple(sorted(set(_event_buckets(resources)))),
        event_buses=tuple(sorted(_event_buses(resources))),
        resources=tuple(sorted(_named(resources))),
    )


def _event_buses(resources: Any) -> set[str]:
    """Return the buses that rules name and the mesh does not make."""
    named = {text(each.get("EventBusName", "")) for each in _of(resources, "AWS::Events::Rule")}
    return named - {""} - {text(each["Name"]) for each in _of(resources, "AWS::Events::EventBus")}


def text(value: Any) -> str:
    """Return a name of a template as text, with `{account}` and `{region}` for what only a deployment knows."""
    if isinstance(value, dict):
        if "Fn::Join" in value:
            return str(value["Fn::Join"][0]).join(map(text, value["Fn::Join"][1]))
        placeholders = {"AWS::AccountId": "{account}", "AWS::Region": "{region}"}
        return placeholders.get(value.get("Ref", ""), "")
    return str(value)


def _event_buckets(resources: list[Any]) -> Iterator[str]:
    """Yield the buckets in the patterns of rules of triggers. That of the mesh has a name that only a deployment knows."""
    for rule in _of(resources, "AWS::Events::Rule"):
        pattern = rule.get("EventPattern", {})
        if pattern.get("source") == ["aws.s3"]:
            named = pattern.get("detail", {}).get("bucket", {}).get("name", [])
            yield from (name for name in named if isinstance(name, str))


def _concurrency(source: Mapping[str, Any]) -> int:
    """Return how many concurrent executions the event source of a queue may start; 0 for any other source."""
    pollers = source.get("ProvisionedPollerConfig", {}).get("MaximumPollers", 0)
    return int(source.get("ScalingConfig", {}).get("MaximumConcurrency") or pollers * _EXECUTIONS_PER_POLLER)


def _of(resources: list[Any], kind: str) -> Iterator[Mapping[str, Any]]:
    return (resource.get("Properties", {}) for resource in resources if resource["Type"] == kind)


def _named(resources: list[Any]) -> Iterator[NamedResource]:
    for resource in resources:
        if resource["Type"] in _NAMED:
            kind, key = _NAMED[resource["Type"]]
            if name := text(resource.get("Properties", {}).get(key, "")):
                yield NamedResource(kind, name)
