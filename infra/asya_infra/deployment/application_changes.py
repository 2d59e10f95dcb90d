"""Compares the deployed and the synthesized Spark applications. EMR Serverless changes and deletes only a stopped one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from asya_infra.assembly import Template

_APPLICATION = "AWS::EMRServerless::Application"


@dataclass(frozen=True, order=True)
class ApplicationChange:
    """An application that a deployment changes or deletes."""

    stack: str
    logical_id: str
    action: Literal["changes", "deletes"]


def application_changes(
    deployed: Mapping[str, Template], synthesized: Mapping[str, Template]
) -> list[ApplicationChange]:
    """Return the applications that must be stopped before a deployment.

    Args:
        deployed: the templates of the deployed stacks by name.
        synthesized: the templates to deploy. A stack that they lack is to be deleted.
    """
    changes: list[ApplicationChange] = []
    for stack, template in deployed.items():
        later = applications(synthesized.get(stack, {}))
        for logical_id, resource in applications(template).items():
            if logical_id not in later:
                changes.append(ApplicationChange(stack, logical_id, "deletes"))
            elif _properties(resource) != _properties(later[logical_id]):
                changes.append(ApplicationChange(stack, logical_id, "changes"))
    return sorted(changes)


def applications(template: Template) -> dict[str, Mapping[str, Any]]:
    """Return the applications of a template by logical id."""
    return {
        logical_id: resource
        for logical_id, resource in template.get("Resources", {}).items()
        if resource["Type"] == _APPLICATION
    }


def application_tags(template: Template) -> dict[str, str]:
    """Return the tags of the application of a template: those of the parameter with its id."""
    for resource in template.get("Resources", {}).values():
        if resource["Type"] == "AWS::SSM::Parameter":
            return dict(resource["Properties"].get("Tags", {}))
    return {}


def _properties(resource: Mapping[str, Any]) -> Any:
    """Return what CloudFormation compares; the metadata of CDK changes nothing."""
    return {key: value for key, value in resource.items() if key != "Metadata"}
