"""All older forms of one mesh file, put into today's keys."""

from dataclasses import dataclass
from typing import Any

from asya_infra.mesh_file.legacy.crew import upgrade_crew
from asya_infra.mesh_file.legacy.draft import Draft
from asya_infra.mesh_file.legacy.operator import upgrade_operator_settings
from asya_infra.mesh_file.legacy.values import as_flag
from asya_infra.mesh_file.legacy.variables import upgrade_variables
from asya_infra.mesh_file.problems import Problem
from asya_infra.mesh_file.source import Location, Source


@dataclass(frozen=True)
class UpgradeResult:
    """The file's values in today's keys, and what was wrong with the older ones."""

    values: dict[str, Any]
    problems: list[Problem]


def upgrade(source: Source) -> UpgradeResult:
    """Put every older form into today's keys; a file without any comes back as it is."""
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
            draft.add_problem(place, "an actor that is not to be deployed is left out of the file")
    except ValueError as error:
        draft.add_problem(place, str(error))
