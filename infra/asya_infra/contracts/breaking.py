"""Finds the changes of contracts that break envelopes in flight or callers, when one mesh takes the place of another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from asya_infra.contracts.compatibility import OTHERS, Refusal, refusals
from asya_infra.contracts.mesh_contracts import MeshContracts
from asya_infra.contracts.read import Schema
from asya_infra.mesh_file.source import Location

_DEFAULT = "give it a default, or deploy in two steps: first what gives it, then what needs it"
_BOTH = "accept both until the queue is empty"
_STILL = "accept it until the queue is empty"
_TAKER_DEFAULT = "deploy {taker!r} first, with a default for it"
_TAKER_STILL = "deploy {taker!r} first, so that it accepts it"
_TAKER_BOTH = "deploy {taker!r} first, so that it accepts both"
_ARGUMENT_DEFAULT = "give it a default"
_ARGUMENT = "accept both until no caller sends the old form"
_ARGUMENT_STILL = "accept it until no caller sends it"
_RESULT = "keep it until no caller reads it"


@dataclass(frozen=True)
class Breaking:
    """A change that breaks something.

    Attributes:
        place: the location in the mesh file.
        problem: what breaks.
        advice: what to do.
    """

    place: Location
    problem: str
    advice: str

    def __str__(self) -> str:
        return f"{self.problem}; {self.advice}"


def breaking_changes(before: MeshContracts, after: MeshContracts) -> list[Breaking]:
    """Return what breaks when a mesh takes the place of another one, each once. What is not known is no finding.

    Args:
        before: the contracts that are deployed.
        after: the contracts to deploy.
    """
    by_field: dict[tuple[str, str], Breaking] = {}
    for taker, refusal in _in_queues(before, after):
        by_field.setdefault((taker, refusal.field), _needed(taker, refusal, "envelopes in flight"))
    for giver, taker, refusal in _on_the_way(before, after):
        by_field.setdefault((taker, refusal.field), _needed(taker, refusal, f"envelopes in flight from {giver}"))
    for giver, taker, refusal in _until_replaced(before, after):
        by_field.setdefault((taker, refusal.field), _given(giver, taker, refusal))
    return [*by_field.values(), *_tools(before, after), *_results(before, after)]


def _in_queues(before: MeshContracts, after: MeshContracts) -> Iterator[tuple[str, Refusal]]:
    """Yield what an actor accepted and refuses now: it may wait in its queue, from any sender."""
    for name, actor in before.actors.items():
        now = after.actors.get(name)
        if now is not None:
            yield from ((name, each) for each in _refusals(actor.input, now.input))


def _on_the_way(before: MeshContracts, after: MeshContracts) -> Iterator[tuple[str, str, Refusal]]:
    """Yield what an earlier actor or tool gave and an actor refuses now, unless it refused it before."""
    givers = [
        *((f"tool {name!r}", tool.input, tool.next) for name, tool in before.tools.items()),
        *((repr(name), actor.output, actor.next) for name, actor in before.actors.items()),
    ]
    for giver, schema, takers in givers:
        for taker in takers:
            refused_before = _fields(schema, _input(before, taker))
            for each in _refusals(schema, _input(after, taker)):
                if each.field not in refused_before:
                    yield giver, taker, each


def _until_replaced(before: MeshContracts, after: MeshContracts) -> Iterator[tuple[str, str, Refusal]]:
    """Yield what an actor gives now, and the earlier function of another one refuses, unless it was given before."""
    for name, actor in after.actors.items():
        earlier = before.actors.get(name)
        if earlier is None or earlier.output is None:
            continue
        for taker in dict.fromkeys((*actor.next, *earlier.next)):
            refused_before = _fields(earlier.output, _input(before, taker))
            for each in _refusals(actor.output, _input(before, taker)):
                if each.field not in refused_before:
                    yield name, taker, each


def _tools(before: MeshContracts, after: MeshContracts) -> Iterator[Breaking]:
    """Yield what breaks for those who call tools."""
    for name, tool in before.tools.items():
        now = after.tools.get(name)
        if now is None:
            yield Breaking(
                ("tools",), f"the tool {name!r} is removed; its callers fail", "keep it until nobody calls it"
            )
            continue
        for each in _refusals(tool.input, now.input):
            yield Breaking(
                ("tools", name, "input_schema"),
                f"the tool {name!r} {_takes(each)}; callers may send {_shown(each)}",
                _advice(each, _ARGUMENT_DEFAULT, _ARGUMENT_STILL, _ARGUMENT),
            )


def _results(before: MeshContracts, after: MeshContracts) -> Iterator[Breaking]:
    """Yield what breaks for those who read results. Tools that end with the same actor have one finding together."""
    tools: dict[Refusal, list[str]] = {}
    for name, tool in before.tools.items():
        now = after.tools.get(name)
        if now is not None:
            results = _output(after, now.result), _opened(_output(before, tool.result))
            for each in _refusals(*results):
                tools.setdefault(each, []).append(name)
    for refusal, names in tools.items():
        subject = f"the result of {'tool' if len(names) == 1 else 'tools'} {', '.join(map(repr, names))}"
        if refusal.gives is None:
            problem = f"{subject} may have no {refusal.field}; callers may rely on it"
        else:
            verb = "have" if refusal.field else "be"
            problem = (
                f"{subject} may {verb} {_typed(refusal.field, refusal.gives)}; callers may rely on {refusal.needs}"
            )
        yield Breaking(("tools", names[0]), problem, _RESULT)


def _needed(taker: str, refusal: Refusal, givers: str) -> Breaking:
    """The finding that an actor refuses what the envelopes of some givers have."""
    problem = f"{taker!r} {_takes(refusal)}; {givers} may have {_shown(refusal)}"
    return Breaking(("actors", taker), problem, _advice(refusal, _DEFAULT, _STILL, _BOTH))


def _given(giver: str, taker: str, refusal: Refusal) -> Breaking:
    """The finding that an actor gives what the earlier function of another one refuses."""
    if refusal.gives is None:
        problem = f"{giver!r} may give no {refusal.field}; the earlier {taker!r} needs it"
    elif refusal.needs is None:
        problem = f"{giver!r} gives {_name(refusal.field)}; the earlier {taker!r} refuses it"
    else:
        given = _typed(refusal.field, refusal.gives)
        problem = f"{giver!r} gives {given}; the earlier {taker!r} needs {refusal.needs}"
    advice = _advice(refusal, _TAKER_DEFAULT, _TAKER_STILL, _TAKER_BOTH)
    return Breaking(("actors", giver), problem, advice.format(taker=taker))


def _advice(refusal: Refusal, missing: str, not_allowed: str, other_type: str) -> str:
    if refusal.gives is None:
        return missing
    return not_allowed if refusal.needs is None else other_type


def _takes(refusal: Refusal) -> str:
    if refusal.needs is None:
        return f"takes no {_name(refusal.field)}"
    return f"needs {_typed(refusal.field, refusal.needs)}"


def _shown(refusal: Refusal) -> str:
    if refusal.needs is None:
        return "some" if refusal.field.endswith(OTHERS) else "it"
    return refusal.gives or "none"


def _name(field: str) -> str:
    if not field.endswith(OTHERS):
        return f"field {field}"
    parent = field.removesuffix(OTHERS).removesuffix(".")
    return f"other fields in {parent}" if parent else "other fields"


def _typed(field: str, name: str) -> str:
    return f"{field}: {name}" if field else name


def _input(contracts: MeshContracts, actor: str) -> Schema | None:
    return contracts.actors[actor].input if actor in contracts.actors else None


def _output(contracts: MeshContracts, actor: str | None) -> Schema | None:
    return contracts.actors[actor].output if actor is not None and actor in contracts.actors else None


def _refusals(given: Schema | None, needed: Schema | None) -> list[Refusal]:
    return [] if given is None or needed is None or given == needed else refusals(given, needed)


def _fields(given: Schema | None, needed: Schema | None) -> set[str]:
    """The fields that are refused; a schema may refuse its own output, such as a decimal for a constrained string."""
    return {each.field for each in _refusals(given, needed)}


def _opened(schema: Any) -> Any:
    """A schema for readers, who do not mind more fields."""
    if isinstance(schema, list):
        return [_opened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _opened(value) for key, value in schema.items() if key != "additionalProperties" or value is not False}
