"""Finds the actors that a deployment changes from heavy to light: their queues stay, and their job roles go."""

from collections.abc import Iterable
from typing import Any

from asya.protocol import names
from asya_infra.assembly import Template

_ROLE = "AWS::IAM::Role"


def no_longer_heavy(
    deployed: Template, synthesized: Template, actors: Iterable[str], namespace: str, region: str
) -> list[str]:
    """Return those of the actors whose job role a deployment of the synthesized template deletes.

    Args:
        deployed, synthesized: the templates of one stack of functions.
        actors: the actors whose queues stay.
        namespace: the namespace with its stage.
        region: the region of the mesh.
    """
    removed = _role_names(deployed, region) - _role_names(synthesized, region)
    return [actor for actor in actors if names.role_name(namespace, names.job_role(actor), region) in removed]


def _role_names(template: Template, region: str) -> set[str]:
    resources = template.get("Resources", {}).values()
    return {_text(each["Properties"].get("RoleName"), region) for each in resources if each["Type"] == _ROLE}


def _text(name: Any, region: str) -> str:
    """Return the name of a role. Its region is a reference if the template does not know it."""
    if isinstance(name, dict):
        parts = name["Fn::Join"][1] if "Fn::Join" in name else [name]
        return "".join(part if isinstance(part, str) else region for part in parts)
    return str(name)
