"""Finds triggers whose tasks may start them again, at once or through other triggers (`protocol §16.loop`).

The mesh file says what a task may cause: objects, events and calls of webhooks. Patterns of keys are those of IAM: `*` for any
text, `?` for one character, everything else as it is.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property

from asya.ends.results import RECENT_PREFIX
from asya.heavy.tenant_access import TENANT
from asya.protocol import names
from asya.protocol.keys import (
    CANCELED_PREFIX,
    CHECKPOINT_PREFIX,
    DATA_PREFIX,
    PAUSED_PREFIX,
    RESULTS_PREFIX,
    SUMP_PREFIX,
    SUPERSEDED_PREFIX,
    S3Prefix,
)
from asya.protocol.triggers import EventSource
from asya_infra.mesh_file.actor_model import AccessEntry, Statement
from asya_infra.mesh_file.mesh_model import MeshFile, TriggerSection
from asya_infra.mesh_file.result_index import has_index


def patterns_of(prefix: str, suffix: str) -> tuple[str, ...]:
    """Return patterns whose keys together are those that begin with `prefix` and end with `suffix`.

    The two may share characters: the key `a.csv` begins with `a.` and ends with `.csv`.
    """
    shared = [prefix + suffix[length:] for length in range(1, len(suffix) + 1) if prefix.endswith(suffix[:length])]
    return (f"{prefix}*{suffix}", *shared)


def intersect(one: str, other: str) -> bool:
    """Whether some key matches both patterns."""
    beginnings = zip(_beginning(one), _beginning(other), strict=False)
    if any(character != expected for character, expected in beginnings):
        return False  # most pairs differ before their first wildcard
    # The places in `other` that a common key may have reached, for each place in `one`.
    places = _past_stars(other, {0})
    for character in one:
        if character == "*":
            places = set(range(min(places), len(other) + 1)) if places else places
            continue
        matched = {
            place if other[place] == "*" else place + 1
            for place in places
            if place < len(other) and (character == "?" or other[place] in ("*", "?", character))
        }
        places = _past_stars(other, matched)
    return len(other) in places


def _beginning(pattern: str) -> str:
    return pattern[: min(pattern.find(each) % (len(pattern) + 1) for each in "*?")]


def _past_stars(pattern: str, places: set[int]) -> set[int]:
    """Return these places, and those after the `*` at each, which may be empty."""
    found = set(places)
    for place in places:
        following = place
        while following < len(pattern) and pattern[following] == "*":
            following += 1
            found.add(following)
    return found


_ANY_ACCOUNT = "?" * names.ACCOUNT_LENGTH
_PUT_OBJECT = "s3:putobject"
_PUT_EVENTS = "events:putevents"
_OBJECTS = re.compile(r"arn:[^:]*:s3:::([^/]+)/(.+)")
_BUS = re.compile(r"(?:arn:[^:]*:events:[^:]*:[^:]*:event-bus/)?(.+)")
_DEFAULT_BUS = "default"
_ENDS = ""
"""Stands for the end actors, to which each task may come."""
_EQUALS = re.compile(r"(ForAllValues:|ForAnyValue:)?String(Equals|Like)(IgnoreCase)?")


@dataclass(frozen=True)
class Causes:
    """Says how the tasks of one trigger may start another.

    Attributes:
        namespace: the namespace with its stage.
    """

    mesh: MeshFile
    namespace: str
    # Each pair of an actor and a trigger is looked at once: a mesh may have a hundred of both.
    _known: dict[int, dict[str, list[str]]] = field(default_factory=dict, compare=False)
    _reached: dict[tuple[str, ...], list[str]] = field(default_factory=dict, compare=False)

    def of(self, cause: TriggerSection, started: TriggerSection) -> list[str]:
        """Return the ways in which a task of one trigger may start another trigger, or the same one."""
        route = cause.route or self._route_of_tool(cause.tool)
        if route not in self._reached:
            self._reached[route] = self._reachable(route)
        reached = self._reached[route]
        if not reached:
            return []
        starters = self._starters(started)
        return [way for actor in starters if actor in (*reached, _ENDS) for way in starters[actor]]

    def _starters(self, started: TriggerSection) -> dict[str, list[str]]:
        """Return the ways in which actors may start a trigger, by the actor."""
        if id(started) not in self._known:
            found = {actor: self._found([actor], started) for actor in self.mesh.actors}
            found[_ENDS] = self._found([], started)
            self._known[id(started)] = {actor: ways for actor, ways in found.items() if ways}
        return self._known[id(started)]

    def _found(self, actors: Sequence[str], started: TriggerSection) -> list[str]:
        """Return how actors may start a trigger; without any, how the end actors may."""
        if started.objects is not None:
            place = self.place(started.objects.bucket)
            wanted = patterns_of(place.prefix + started.objects.prefix, started.objects.suffix)
            told = f"{started.objects.bucket}/{started.objects.prefix}*{started.objects.suffix}"
            return list(self._writes(actors, S3Prefix(place.bucket, ""), wanted, told))
        if started.event is not None:
            return list(self._events(actors, started.event))
        if started.webhook is not None:
            return list(self._keys(actors, started.webhook.secret))
        return []

    def place(self, bucket: str) -> S3Prefix:
        """Return the place of a bucket of the mesh file; that of the mesh's own bucket is a pattern."""
        storage = self.mesh.storage
        existing = {"data": storage.data_bucket, "results": storage.results_bucket}
        if bucket not in existing:
            return S3Prefix(bucket, "")
        if (name := existing[bucket]) is not None:
            return S3Prefix(name, "")
        prefix = DATA_PREFIX if bucket == "data" else RESULTS_PREFIX
        return S3Prefix(names.bucket_name(self.namespace, _ANY_ACCOUNT, "*"), prefix)

    def _writes(self, actors: Sequence[str], place: S3Prefix, wanted: Sequence[str], told: str) -> Iterator[str]:
        """Yield who writes keys of a bucket that match patterns."""

        def starts_it(written: S3Prefix) -> bool:
            return any(intersect(each, written.prefix) for each in wanted) and intersect(written.bucket, place.bucket)

        for actor, index, entry in self._entries(actors):
            if any(starts_it(written) for written in self._written(entry)):
                yield f"actors.{actor}.access[{index}] lets it write keys of {told}"
        results = self.place("results")
        for end, pattern in self._ends() if not actors else ():
            if starts_it(S3Prefix(results.bucket, results.prefix + pattern)):
                yield f"{end} writes results/{pattern}"

    def _events(self, actors: Sequence[str], event: EventSource) -> Iterator[str]:
        if event.source is None or not all(source.startswith("aws.") for source in event.source):
            for actor, index, entry in self._entries(actors):
                if entry.statement is not None and _puts_events(entry.statement, event):
                    yield f"actors.{actor}.access[{index}] lets it put events on the bus {event.bus}"
        if event.bus != _DEFAULT_BUS:
            return
        if _may_match(event, "aws.emr-serverless", "EMR Serverless ") and "applicationId" not in (event.detail or {}):
            for actor in actors:
                if self.mesh.actors[actor].spark is not None:
                    yield f"the job runs of the actor {actor!r} send such events"
        if event.source is not None and _may_match(event, "aws.s3", "Object Created"):
            buckets = _patterns(event.detail, "bucket", "name")
            keys = _patterns(event.detail, "object", "key")
            for bucket in buckets:
                yield from self._writes(actors, S3Prefix(bucket, ""), keys, f"the bucket {bucket}")

    def _keys(self, actors: Sequence[str], secret: str) -> Iterator[str]:
        for actor in actors:
            for variable, reference in self.mesh.actors[actor].secrets.items():
                if reference == secret:
                    yield f"actors.{actor}.secrets.{variable} has the keys of the webhook"
        for actor, index, entry in self._entries(actors):
            if entry.secret == secret:
                yield f"actors.{actor}.access[{index}] has the keys of the webhook"

    def _entries(self, actors: Sequence[str]) -> Iterator[tuple[str, int, AccessEntry]]:
        for actor in actors:
            for index, entry in enumerate(self.mesh.actors[actor].access):
                yield actor, index, entry

    def _route_of_tool(self, tool: str | None) -> tuple[str, ...]:
        section = self.mesh.tools.get(tool) if tool is not None else None
        return section.route or (tool,) if section is not None and tool is not None else ()

    def _reachable(self, route: tuple[str, ...]) -> list[str]:
        """Return the actors that a task on a route may come to, as far as the mesh file says."""
        actors = self.mesh.actors
        found: list[str] = []
        waiting = [*route, *(self.mesh.sink.hooks if route else ())]
        while waiting:
            actor = waiting.pop(0)
            section = actors.get(actor)
            if section is None or actor in found:
                continue
            found.append(actor)
            for policy in section.resiliency.policies.values():
                waiting += policy.then_route or ()
            targets = section.can_send_to or ()
            if "*" in targets:
                # All that there are; their order tells nobody anything.
                return [*found, *(other for other in actors if other not in found)]
            waiting += targets
        return found

    def _written(self, entry: AccessEntry) -> Iterator[S3Prefix]:
        """Yield what an entry lets an actor write: patterns of buckets, with patterns of keys."""
        if entry.bucket is not None:
            place = self.place(entry.bucket)
            yield from (S3Prefix(place.bucket, place.prefix + pattern.replace(TENANT, "*")) for pattern in entry.write)
        elif entry.database is not None:
            location = f"{(entry.location or '').rstrip('/')}/"
            data = self.place("data")
            place = S3Prefix.from_uri(location) if "://" in location else S3Prefix(data.bucket, data.prefix + location)
            yield from (S3Prefix(place.bucket, f"{place.prefix}{table}/*") for table in entry.write)
        elif entry.statement is not None and _allows(entry.statement, _PUT_OBJECT):
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


def _allows(statement: Statement, action: str) -> bool:
    return statement.Effect == "Allow" and any(fnmatchcase(action, each.lower()) for each in statement.Action)


def _of_statement(statement: Statement) -> Iterator[S3Prefix]:
    for resource in statement.Resource:
        found = _OBJECTS.fullmatch(resource)
        if found:
            yield S3Prefix(found[1], found[2])
        elif resource == "*" or ":accesspoint/" in resource:
            # An access point does not say its bucket.
            yield S3Prefix("*", "*")


def _puts_events(statement: Statement, event: EventSource) -> bool:
    """Whether a statement allows events that a pattern may match."""
    if not _allows(statement, _PUT_EVENTS):
        return False
    if not any((found := _BUS.fullmatch(each)) and intersect(found[1], event.bus) for each in statement.Resource):
        return False
    for operator, values in statement.Condition.items():
        if _EQUALS.fullmatch(operator):
            for key, wanted in (("events:source", event.source), ("events:detail-type", event.detail_type)):
                allowed = values.get(key)
                if allowed and wanted is not None and not any(intersect(a, b) for a in allowed for b in wanted):
                    return False
    return True


def _may_match(event: EventSource, source: str, detail_type: str) -> bool:
    if event.source is not None and source not in event.source:
        return False
    return event.detail_type is None or any(each.startswith(detail_type) for each in event.detail_type)


def _patterns(detail: dict[str, object] | None, *path: str) -> list[str]:
    """Return patterns of IAM for what a pattern of EventBridge says at a path; `*` for what is not said so simply."""
    value: object = detail
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    if not isinstance(value, list):
        return ["*"]
    return [_pattern(each) for each in value]


def _pattern(matcher: object) -> str:
    if isinstance(matcher, str):
        return matcher
    if isinstance(matcher, dict) and len(matcher) == 1:
        ((kind, text),) = matcher.items()
        if isinstance(text, str):
            return {"prefix": f"{text}*", "suffix": f"*{text}", "wildcard": text}.get(kind, "*")
    return "*"


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
