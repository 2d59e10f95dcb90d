"""Finds triggers whose tasks may write an object that starts them again (`protocol §16.objects.loop`)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from asya.crew.result_index import RECENT_PREFIX
from asya.protocol import names
from asya.protocol.keys import CANCELED_PREFIX, CHECKPOINT_PREFIX, PAUSED_PREFIX, SUMP_PREFIX, SUPERSEDED_PREFIX
from asya.protocol.s3_prefix import S3Prefix
from asya_infra.addresses import DATA_PREFIX, RESULTS_PREFIX
from asya_infra.mesh_file.actor_model import AccessEntry, Statement
from asya_infra.mesh_file.mesh_model import MeshFile
from asya_infra.mesh_file.result_index import has_index
from asya_infra.mesh_file.trigger_checks.key_patterns import intersect, patterns_of
from asya_infra.mesh_file.triggers.model import TriggerSection

_ANY_ACCOUNT = "?" * names.ACCOUNT_LENGTH
_PUT = "s3:putobject"
_OBJECTS = re.compile(r"arn:[^:]*:s3:::([^/]+)/(.+)")


@dataclass(frozen=True)
class LoopCheck:
    """Looks for loops in a mesh.

    Attributes:
        namespace: the namespace with its stage.
    """

    mesh: MeshFile
    namespace: str

    def problems(self, section: TriggerSection) -> Iterator[str]:
        """Yield a problem for each way in which a task of a trigger may start the trigger again."""
        source = section.s3
        route = section.route or self._route_of_tool(section.tool)
        if source is None or not route:
            return
        place = self._place(source.bucket)
        told = f"{source.bucket}/{source.prefix}*{source.suffix}"

        def starts_it(written: S3Prefix) -> bool:
            wanted = patterns_of(place.prefix + source.prefix, source.suffix)
            return intersect(written.bucket, place.bucket) and any(intersect(each, written.prefix) for each in wanted)

        for actor in self._reachable(route):
            for index, entry in enumerate(self.mesh.actors[actor].access):
                if any(starts_it(written) for written in self._written(entry)):
                    yield (
                        f"the actor {actor!r} of its tasks may write objects that start it again: actors.{actor}.access[{index}] "
                        f"lets it write keys of {told}. Let it write elsewhere, or choose a prefix or a suffix that its output "
                        "does not have"
                    )
        results = self._place("results")
        found = [
            f"{end} writes results/{pattern}"
            for end, pattern in self._ends()
            if starts_it(S3Prefix(results.bucket, results.prefix + pattern))
        ]
        if found:
            yield (
                f"each task may start it again: {', '.join(found)}, and {told} has such keys. Choose a prefix or a suffix "
                "that these results do not have"
            )

    def _route_of_tool(self, tool: str | None) -> tuple[str, ...]:
        section = self.mesh.tools.get(tool) if tool is not None else None
        return section.route or (tool,) if section is not None and tool is not None else ()

    def _reachable(self, route: tuple[str, ...]) -> list[str]:
        """Return the actors that a task on a route may come to, as far as the mesh file says."""
        actors = self.mesh.actors
        found: list[str] = []
        waiting = [*route, *self.mesh.sink.hooks]
        while waiting:
            actor = waiting.pop(0)
            section = actors.get(actor)
            if section is None or actor in found:
                continue
            found.append(actor)
            for policy in section.resiliency.policies.values():
                waiting += policy.then_route or ()
            targets = section.can_send_to or ()
            waiting += sorted(actors) if "*" in targets else targets
        return found

    def _written(self, entry: AccessEntry) -> Iterator[S3Prefix]:
        """Yield what an entry lets an actor write: patterns of buckets, with patterns of keys."""
        if entry.bucket is not None:
            place = self._place(entry.bucket)
            yield from (S3Prefix(place.bucket, place.prefix + pattern) for pattern in entry.write)
        elif entry.database is not None:
            location = f"{(entry.location or '').rstrip('/')}/"
            data = self._place("data")
            place = S3Prefix.from_uri(location) if "://" in location else S3Prefix(data.bucket, data.prefix + location)
            yield from (S3Prefix(place.bucket, f"{place.prefix}{table}/*") for table in entry.write)
        elif entry.statement is not None and entry.statement.Effect == "Allow":
            yield from _of_statement(entry.statement)

    def _ends(self) -> Iterator[tuple[str, str]]:
        """Yield the crew actors that every task may come to, with patterns of the keys that they write below the results."""
        sink = self.mesh.sink
        stored = (*sink.folders, CANCELED_PREFIX, PAUSED_PREFIX, SUPERSEDED_PREFIX) if sink.persist else ()
        yield from ((names.SINK, f"{prefix}*.json") for prefix in stored)
        if has_index(self.mesh):
            yield names.SINK, f"{RECENT_PREFIX}*.jsonl"
        yield names.SUMP, f"{SUMP_PREFIX}*.json"
        yield names.CHECKPOINT, f"{CHECKPOINT_PREFIX}*.json"

    def _place(self, bucket: str) -> S3Prefix:
        """Return the place of a bucket of the mesh file; that of the mesh's own bucket is a pattern."""
        storage = self.mesh.storage
        existing = {"data": storage.data_bucket, "results": storage.results_bucket}
        if bucket not in existing:
            return S3Prefix(bucket, "")
        if (name := existing[bucket]) is not None:
            return S3Prefix(name, "")
        prefix = DATA_PREFIX if bucket == "data" else RESULTS_PREFIX
        return S3Prefix(names.bucket_name(self.namespace, _ANY_ACCOUNT, "*"), prefix)


def _of_statement(statement: Statement) -> Iterator[S3Prefix]:
    if not any(fnmatchcase(_PUT, action.lower()) for action in statement.Action):
        return
    for resource in statement.Resource:
        found = _OBJECTS.fullmatch(resource)
        if found:
            yield S3Prefix(found[1], found[2])
        elif resource == "*":
            yield S3Prefix("*", "*")
