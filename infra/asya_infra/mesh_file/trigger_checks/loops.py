"""Finds triggers whose tasks may start them again, at once or through other triggers (`protocol §16.loop`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.trigger_checks.causes import Causes
from asya_infra.mesh_file.triggers.model import TriggerSection

Ways = Mapping[str, Mapping[str, list[str]]]
"""How the tasks of a trigger may start others: by the one trigger and the other."""

_REMEDIES = {
    "s3": "Let it write elsewhere, or choose a prefix or a suffix that its output does not have",
    "event": "Choose a pattern that such events do not match, or let it put others only, by the condition events:source",
    "webhook": "Give the webhook a secret of its own",
}


@dataclass(frozen=True)
class LoopCheck:
    """Looks for loops in a mesh.

    Attributes:
        namespace: the namespace with its stage.
    """

    mesh: MeshFile
    namespace: str

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield the name of a trigger and a problem, for each trigger that its own tasks may start, and for each longer loop."""
        for name in self.mesh.triggers:
            if ways := self._ways[name].get(name):
                yield name, f"its own tasks may start it again: {', '.join(ways)}. {self._remedy(name)}"
        told = set[str]()
        for name in self.mesh.triggers:
            loop = self._loop(name) if name not in told else []
            if loop:
                told.update(loop)
                steps = [
                    f"a task of {one!r} may start {other!r}: {self._ways[one][other][0]}"
                    for one, other in zip(loop, [*loop[1:], name], strict=True)
                ]
                yield (
                    name,
                    f"it and {_listed(loop[1:])} may start each other for ever: {'; '.join(steps)}. {self._remedy(name)}",
                )

    @cached_property
    def _ways(self) -> Ways:
        triggers = self.mesh.triggers
        causes = Causes(self.mesh, self.namespace)
        return {
            name: {other: ways for other, started in triggers.items() if (ways := causes.of(cause, started))}
            for name, cause in triggers.items()
        }

    def _remedy(self, name: str) -> str:
        return _REMEDIES[repeatable_source(self.mesh.triggers[name])]

    def _loop(self, start: str) -> list[str]:
        """Return the shortest loop of two triggers or more that leads back to one; empty without any."""
        paths = [[start]]
        seen = {start}
        for path in paths:
            for following in self._ways[path[-1]]:
                if following == start and len(path) > 1:
                    return path
                if following not in seen:
                    seen.add(following)
                    paths.append([*path, following])
        return []


def repeatable_source(trigger: TriggerSection) -> str:
    """Return the source that may start a trigger again; a trigger with two sources may have a schedule too."""
    return next(source for source in trigger.sources if source in _REMEDIES)


def _listed(loop: list[str]) -> str:
    return " and ".join(map(repr, loop))
