"""Tells before a deployment which changes of types break envelopes in flight or callers."""

from collections.abc import Callable, Mapping

from asya_infra.assembly import Template
from asya_infra.contracts.breaking import Breaking, breaking_changes
from asya_infra.contracts.mesh_contracts import read_contracts
from asya_infra.mesh_file.source import Location, format_location

_FUNCTION = "AWS::Lambda::Function"
GUIDE = "docs/how-to/change-a-mesh.md"

Locate = Callable[[Location, str], str]
"""Makes the line of a finding: of its location in the mesh file and its text."""


def by_key(place: Location, text: str) -> str:
    """The line of a finding without the mesh file."""
    return f"{format_location(place)}: {text}"


def contract_changes(deployed: Mapping[str, Template], synthesized: Mapping[str, Template]) -> list[Breaking] | None:
    """Return what a deployment breaks; None if functions are deployed whose templates do not record their types.

    Args:
        deployed: the templates of the deployed stacks by name; none before the first deployment.
        synthesized: the templates to deploy.
    """
    if not any(_has_functions(template) for template in deployed.values()):
        return []
    before, after = read_contracts(deployed.values()), read_contracts(synthesized.values())
    return None if before is None or after is None else breaking_changes(before, after)


def _has_functions(template: Template) -> bool:
    return any(resource.get("Type") == _FUNCTION for resource in template.get("Resources", {}).values())


def summary(findings: int) -> str:
    """The line after the findings."""
    changes = "1 change breaks" if findings == 1 else f"{findings} changes break"
    return f"{changes} envelopes in flight or callers; see {GUIDE}"
