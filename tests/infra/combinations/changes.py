"""What CloudFormation refuses, and what is lost, when a deployed mesh becomes another one.

The properties that replace a resource are those of the resource's own schema in CloudFormation, as cfn-lint has it.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from tests.infra.combinations.synthesis import Template

_STATE = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::Logs::LogGroup", "AWS::KMS::Key")
_KEPT = ("AWS::DynamoDB::Table", "AWS::S3::Bucket")
_IDENTITY: dict[str, tuple[str, ...]] = {
    "AWS::Lambda::EventSourceMapping": ("EventSourceArn", "FunctionName"),
    "AWS::SNS::Subscription": ("TopicArn", "Endpoint", "Protocol"),
    "AWS::SQS::QueuePolicy": ("Queues",),
    "AWS::S3::BucketPolicy": ("Bucket",),
    "AWS::ApiGatewayV2::Route": ("ApiId", "RouteKey"),
    "AWS::ApiGatewayV2::Stage": ("ApiId", "StageName"),
    "AWS::ApiGatewayV2::Authorizer": ("ApiId", "Name"),
    "AWS::ApiGateway::Stage": ("RestApiId", "StageName"),
    "AWS::Lambda::Alias": ("FunctionName", "Name"),
    "AWS::Events::Rule": ("EventBusName", "Name"),
    "AWS::ApiGateway::Resource": ("RestApiId", "ParentId", "PathPart"),
    "AWS::ApiGateway::Method": ("RestApiId", "ResourceId", "HttpMethod"),
}
"""What may exist once, of resources without a name: a second one fails, or the clean-up of the first removes what both share."""
_FREE = ("AWS::CloudFormation::WaitConditionHandle",)


def problems(before: Mapping[str, Template], after: Mapping[str, Template]) -> Iterator[str]:
    """Yield what goes wrong when templates are deployed over others. A queue may go with the function that it feeds."""
    yield from _exports(before, after)
    functions = _names_of(after, "AWS::Lambda::Function")
    for stack in before.keys() & after.keys():
        old, new = before[stack].get("Resources", {}), after[stack].get("Resources", {})
        for name in old.keys() & new.keys():
            yield from _changed(f"{stack}/{name}", old[name], new[name])
        for name in old.keys() - new.keys():
            kind = old[name]["Type"]
            queue = str(old[name].get("Properties", {}).get("QueueName", "")).removesuffix("-dlq")
            if kind in _KEPT or (kind == "AWS::SQS::Queue" and queue in functions):
                yield f"{stack}/{name}: {kind} is removed"
    yield from _moved(before, after)


def _names_of(templates: Mapping[str, Template], kind: str) -> set[str]:
    resources = [each for template in templates.values() for each in template.get("Resources", {}).values()]
    key = f"{kind.rpartition('::')[2]}Name"
    return {str(each["Properties"].get(key)) for each in resources if each["Type"] == kind}


def _exports(before: Mapping[str, Template], after: Mapping[str, Template]) -> Iterator[str]:
    """Yield the exports that deployed stacks import, and that vanish or change before those stacks are deployed again."""
    for importer, template in before.items():
        for name in sorted(_imports(template)):
            old = {stack: value for stack in before if (value := _exported(before[stack], name)) is not None}
            for stack, value in old.items():
                if stack in after and _exported(after[stack], name) != value:
                    yield f"{stack}: the export {name}, which the deployed {importer} imports, vanishes or changes"


def _imports(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {str(value["Fn::ImportValue"])} if "Fn::ImportValue" in value else set()
        return own.union(*(_imports(each) for each in value.values()))
    return set().union(*map(_imports, value)) if isinstance(value, list) else set()


def _exported(template: Template, name: str) -> str | None:
    for output in template.get("Outputs", {}).values():
        if output.get("Export", {}).get("Name") == name:
            return json.dumps(output["Value"], sort_keys=True)
    return None


def _changed(place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    kind = old["Type"]
    if kind != new["Type"]:
        yield f"{place}: {kind} becomes {new['Type']}"
        return
    before, after = old.get("Properties", {}), new.get("Properties", {})
    names = [name for name in _names(kind) if _at(before, name) is not None]
    moved = [name for name in names if _at(before, name) != _at(after, name)]
    replaced = [path for path in _replaced_by(kind) if path not in moved and _at(before, path) != _at(after, path)]
    keys = ", ".join("/".join(each) for each in replaced)
    for name in moved:
        yield f"{place}: the name of {kind} moves from {_at(before, name)} to {_at(after, name)}"
    if replaced and kind in _STATE:
        yield f"{place}: {kind} is replaced, because {keys} changes"
    elif replaced and names and not moved:
        yield f"{place}: {kind} has a name and needs replacement, because {keys} changes; CloudFormation refuses it"
    elif replaced and kind in _IDENTITY and _identity(old) == _identity(new):
        yield f"{place}: {kind} is replaced by one that is the same to its service"
    if kind == "AWS::DynamoDB::Table":
        indexes = [{each["IndexName"] for each in side.get("GlobalSecondaryIndexes", [])} for side in (before, after)]
        if len(indexes[0] ^ indexes[1]) > 1:
            yield f"{place}: {len(indexes[0] ^ indexes[1])} indexes are added or removed; an update may change one"


def _moved(before: Mapping[str, Template], after: Mapping[str, Template]) -> Iterator[str]:
    """Yield what gets another logical id or stack, although its service knows it by what it has kept."""
    old, new = _by_identity(before), _by_identity(after)
    for identity in old.keys() & new.keys():
        if old[identity] != new[identity]:
            yield f"{new[identity]}: {identity[0]} exists already, as {old[identity]}"


def _by_identity(templates: Mapping[str, Template]) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for stack, template in templates.items():
        for name, resource in template.get("Resources", {}).items():
            if (identity := _identity(resource)) is not None:
                # References are to resources of the same stack, but names are those of the account.
                scope = stack if '"Ref"' in identity or "Fn::GetAtt" in identity else ""
                found[resource["Type"], f"{scope}{identity}"] = f"{stack}/{name}"
    return found


def _identity(resource: Mapping[str, Any]) -> str | None:
    kind, properties = resource["Type"], resource.get("Properties", {})
    if kind in _IDENTITY:
        return json.dumps([properties.get(key) for key in _IDENTITY[kind]], sort_keys=True)
    values = [value for name in _names(kind) if (value := _at(properties, name)) is not None]
    return json.dumps(values, sort_keys=True) if values else None


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


@cache
def _schema(kind: str) -> Mapping[str, Any]:
    if kind.startswith("Custom::") or kind in _FREE:
        return {}
    from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER  # takes a second, and most processes only collect

    return dict(PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema)


@cache
def _replaced_by(kind: str) -> list[tuple[str, ...]]:
    """Return the properties that CloudFormation cannot change in a resource."""
    keys = _schema(kind).get("createOnlyProperties", [])
    return [tuple(key.removeprefix("/properties/").split("/")) for key in keys]


@cache
def _names(kind: str) -> list[tuple[str, ...]]:
    """Return the properties that the owner of a resource names it by: primary identifiers that a template may write."""
    schema = _schema(kind)
    read_only = schema.get("readOnlyProperties", [])
    last = kind.rpartition("::")[2]
    candidates = {f"/properties/{last}Name", "/properties/Name"} & {
        f"/properties/{key}" for key in schema.get("properties", {})
    }
    return [tuple(key.removeprefix("/properties/").split("/")) for key in sorted(candidates) if key not in read_only]
