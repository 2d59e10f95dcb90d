"""Upgrades all legacy forms of one mesh file to current keys."""

from dataclasses import dataclass
from typing import Any

from asya_infra.mesh_file.legacy.draft import Draft, as_flag
from asya_infra.mesh_file.legacy.kubernetes import upgrade_crew, upgrade_operator_settings
from asya_infra.mesh_file.legacy.variables import upgrade_variables
from asya_infra.mesh_file.source import Location, Problem, Source


@dataclass(frozen=True)
class UpgradeResult:
    """The file's values with current keys, and the problems of its legacy forms."""

    values: dict[str, Any]
    problems: list[Problem]


def upgrade(source: Source) -> UpgradeResult:
    """Upgrade every legacy form. A file without any stays unchanged."""
    draft = Draft(source)
    upgrade_crew(draft)
    for section in (("defaults",), *(("actors", name) for name in draft.mapping(("actors",)) or {})):
        if draft.mapping(section) is not None:
            _enabled(draft, section)
            upgrade_operator_settings(draft, section)
            upgrade_variables(draft, section)
    return UpgradeResult(draft.values, draft.problems)


def _enabled(draft: Draft, section: Location) -> None:
    place = (*section, "enabled")
    enabled = draft.pop(place)
    if enabled is None:
        return
    try:
        if not as_flag(enabled):
            draft.add_problem(place, "an actor cannot be disabled; remove it from the file")
    except ValueError as error:
        draft.add_problem(place, str(error))
