"""Refuses a deployment that removes what ends open sets, or what resumes and sends held envelopes."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Any

from asya import registry
from asya.capabilities.clock.steps import STEPS, read_steps
from asya.capabilities.fan_in.aws.sets import FanInSets
from asya.protocol import names
from asya.tasks.aws.paused_tasks import PausedTasks
from asya_infra.assembly import Assembly, Template
from asya_infra.deployment.removed_queues import Problem

_FAN_IN = registry.PRODUCT.actor_functions["fan_in"].entry_point
_MOST = 1000
"""The paused and waiting tasks that are counted, at most."""
_EVER = datetime.max.replace(tzinfo=UTC)


def check_held_work(
    session: Any, deployed: Mapping[str, Template], assembly: Assembly, *, dropped: Collection[str] = ()
) -> list[Problem]:
    """Return the reasons against a deployment, because of what functions hold that it removes.

    Args:
        session: a boto3 session in the account and region of the mesh.
        deployed: the deployed templates of the mesh, by the names of their stacks.
        assembly: the synthesized mesh.
        dropped: the actors and functions whose work may be left.
    """
    before, after = _entry_points(deployed.values()), _entry_points(assembly.templates.values())
    removed = {name for name, entry_point in before.items() if after.get(name) != entry_point} - set(dropped)
    problems = []
    fan_ins = sorted(name for name in removed if before[name] == _FAN_IN)
    if fan_ins:
        sets = _open_sets(session, assembly.namespace)
        problems += [_sets_stay_open(name, sets[name]) for name in fan_ins if sets[name]]
    if names.PAUSE_SWEEP in removed and (tasks := _held_tasks(session, assembly.namespace)):
        problems.append(_tasks_stay_held(tasks))
    return problems


def _entry_points(templates: Iterable[Template]) -> dict[str, str]:
    """Return the entry points of functions by the names of their actors, or by their own, and those of the steps of clocks."""
    functions = [
        each["Properties"]
        for template in templates
        for each in template.get("Resources", {}).values()
        if each["Type"] == "AWS::Lambda::Function"
    ]
    variables = [(each.get("Environment", {}).get("Variables", {}), each.get("Handler", "")) for each in functions]
    steps = (step for each, _ in variables if STEPS in each for step in read_steps(each[STEPS]))
    found = {each["ASYA_ACTOR"]: handler for each, handler in variables if "ASYA_ACTOR" in each}
    return found | {step.name: step.entry_point for step in steps}


def _open_sets(session: Any, namespace: str) -> Counter[str]:
    """Return the numbers of open sets by fan-in actor."""
    sets = FanInSets(session.client("dynamodb"), table=names.table_name(namespace, "fan-in"))
    return Counter(each.actor for each in sets.open_sets())


def _held_tasks(session: Any, namespace: str) -> int:
    """Return the number of tasks that pause or wait, or whose release is unfinished."""
    tasks = PausedTasks(session.client("dynamodb"), names.table_name(namespace, "tasks"))
    found = chain(tasks.paused(_EVER), tasks.due_waits(_EVER), tasks.pause_releases(_EVER))
    return sum(1 for _ in islice(found, _MOST))


def _sets_stay_open(actor: str, sets: int) -> Problem:
    keep = f"write `crew: routable: [{actor}]`" if actor in names.ROUTABLE_CREW else "restore it"
    return Problem(
        actor,
        f"the deployment removes the fan-in actor {actor}, which has about {sets} open {'set' if sets == 1 else 'sets'}. "
        f"They would never be merged. In the mesh file {keep}, and deploy; when the sets have ended, remove it. To leave "
        f"them: --drop-messages {actor}",
    )


def _tasks_stay_held(tasks: int) -> Problem:
    count = "1 task pauses or waits" if tasks == 1 else f"{'at least ' * (tasks == _MOST)}{tasks} tasks pause or wait"
    return Problem(
        names.PAUSE_SWEEP,
        f"the deployment removes the last actor that pauses or waits, and {count}. Nothing would resume them or send them on. "
        f"Write `crew: routable: [{names.PAUSE}]` in the mesh file until they have ended (`asya list --status paused`). To "
        f"leave them: --drop-messages {names.PAUSE_SWEEP}",
    )
