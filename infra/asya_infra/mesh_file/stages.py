"""Stages of a mesh file: values over the base, such as another account or more concurrency in production.

A stage is merged into the file before validation. Each value keeps the line where it was written.
"""

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from asya.protocol import names
from asya_infra.mesh_file.problems import Problem, did_you_mean
from asya_infra.mesh_file.source import Location, Source, places

KEY = "stages"
# The same in every stage: the stage's own namespace is made of the base's, and the code is tested before it is promoted.
FIXED_KEYS = ("namespace", "code", "jobs", "capabilities", KEY)


def declared_stages(source: Source) -> dict[str, dict[str, Any]]:
    """Return the declared stages by name. A stage that is not a mapping, which validation reports, counts as empty."""
    stages = source.values.get(KEY)
    if not isinstance(stages, dict):
        return {}
    return {name: stage if isinstance(stage, dict) else {} for name, stage in stages.items()}


def with_stage(source: Source, stage: str) -> Source:
    """Return the values of the mesh file with those of a declared stage merged over them.

    Mappings are merged key by key; lists and single values are replaced. `stage_problems` reports what is left out.
    """
    merged = source.copy()
    own = {key: value for key, value in declared_stages(source)[stage].items() if key not in FIXED_KEYS}
    base, actors = source.values.get("actors"), own.get("actors")
    if isinstance(base, dict) and isinstance(actors, dict):
        own["actors"] = {name: actor for name, actor in actors.items() if name in base}
    _merge(merged, merged.values, own, (), (KEY, stage))
    return merged


def stage_problems(source: Source, selected: str) -> Iterator[Problem]:
    """Yield the problems of the stages that merging would hide.

    Args:
        source: the mesh file.
        selected: the stage to deploy; empty for the base.
    """
    stages = declared_stages(source)
    for stage, values in stages.items():
        yield from (source.problem((KEY, stage, *place), text) for place, text in _findings(source, stage, values))
    if selected and stages and selected not in stages:
        suggestion = did_you_mean(selected, stages)
        yield source.problem((KEY,), f"there is no stage {selected!r}; declared: {', '.join(stages)}{suggestion}")


def name_stage(problem: Problem, stage: str) -> Problem:
    """Name the stage in a problem that only this stage has, unless the problem is at a value of the stage."""
    if problem.where.startswith(f"{KEY}.{stage}"):
        return problem
    return replace(problem, message=f"{problem.message} (in the stage {stage!r})")


def _findings(source: Source, stage: str, values: dict[str, Any]) -> Iterator[tuple[Location, str]]:
    try:
        names.check_label(stage, "stage")
    except ValueError as error:
        yield (), str(error)
    for key in FIXED_KEYS:
        if key in values:
            yield (key,), "is the same in every stage; set it at the top of the file"
    base, own = source.values.get("actors"), values.get("actors")
    if isinstance(base, dict) and isinstance(own, dict):
        for name in own.keys() - base.keys():
            advice = did_you_mean(name, base) or "; add it to the actors of the file"
            yield ("actors", name), f"there is no actor {name!r} to override{advice}"


def _merge(source: Source, base: dict[str, Any], own: dict[str, Any], at: Location, origin: Location) -> None:
    for key, value in own.items():
        if isinstance(base.get(key), dict) and isinstance(value, dict):
            _merge(source, base[key], value, (*at, key), (*origin, key))
        else:
            base[key] = copy.deepcopy(value)
            for inner in places(value):
                source.inherit((*at, key, *inner), (*origin, key, *inner))
