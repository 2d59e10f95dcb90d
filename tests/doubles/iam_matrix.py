"""Who may do what on which object, from the needs of manifests: what a function declares is allowed, and all else is refused.

`Matrix` has the calls on all queues, tables, prefixes and other resources of a mesh, and says which a function declares. It makes
no statements, so it judges those of `asya_infra.permissions`. A capability that the mesh file names counts as those of the product.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise, product
from typing import get_args

from asya import registry
from asya.manifest import Function, Queues, TableChanges
from asya.needs import (
    EACH,
    FAILED,
    OWN,
    SUCCEEDED,
    Calls,
    Group,
    ItemCall,
    Items,
    Keys,
    MessageCall,
    Messages,
    Need,
    ObjectCall,
    Objects,
    Payloads,
    Resource,
    Store,
)
from asya.protocol import names
from asya.protocol.keys import PAYLOADS_PREFIX
from asya.protocol.mesh_table import MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions.evaluation import Request, Value
from asya_infra.permissions.groups import members
from asya_infra.permissions.needs import Place, call_grants

PLAIN_KEY = "4711"
"""The partition key of a record, which begins like no special one."""
OTHER_ACTOR = "somebody-else"
"""An actor whose items no function of the mesh may touch by a need for its own."""
_MOST_TARGETS = 50
_READS_ATTRIBUTES: tuple[ItemCall, ...] = ("BatchGetItem", "GetItem", "Query")


@dataclass(frozen=True)
class OnQueue:
    """A call on a queue."""

    call: MessageCall
    queue: str

    def request(self, place: Place) -> Request:
        return Request(f"sqs:{self.call}", place.addresses.queue_arn(self.queue))


@dataclass(frozen=True)
class OnItem:
    """A call on an item.

    Attributes:
        index: empty for the table itself.
        keys: the partition keys; empty for a call that names none.
        attributes: those that the call names; empty for all.
    """

    call: ItemCall
    table: str
    index: str = ""
    keys: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()

    def request(self, place: Place) -> Request:
        table = place.addresses.table_arn(self.table)
        context: dict[str, Value] = {}
        if self.keys:
            context["dynamodb:LeadingKeys"] = self.keys
        if self.attributes:
            context |= {"dynamodb:Attributes": self.attributes, "dynamodb:Select": "SPECIFIC_ATTRIBUTES"}
        return Request(f"dynamodb:{self.call}", f"{table}/index/{self.index}" if self.index else table, context)


@dataclass(frozen=True)
class OnStream:
    """A read of the changes of a table."""

    table: str

    def request(self, place: Place) -> Request:
        return Request("dynamodb:GetRecords", f"{place.addresses.table_arn(self.table)}/stream/2026-01-01")


@dataclass(frozen=True)
class OnObject:
    """A call on an object."""

    call: ObjectCall
    key: str
    store: Store = "bucket"

    def request(self, place: Place) -> Request:
        bucket, prefix = _store(self.store, place.addresses)
        return Request(f"s3:{self.call}", place.addresses.objects_arn(bucket, prefix + self.key))


@dataclass(frozen=True)
class OnKeys:
    """The list of the keys that begin so."""

    key: str
    store: Store = "bucket"

    def request(self, place: Place) -> Request:
        bucket, prefix = _store(self.store, place.addresses)
        return Request("s3:ListBucket", place.addresses.bucket_arn(bucket), {"s3:prefix": prefix + self.key})


@dataclass(frozen=True)
class OnResource:
    """A call on a resource with a name.

    Attributes:
        call: as `service:Call`.
    """

    call: str
    resource: Resource

    def request(self, place: Place) -> Request | None:
        """Return what AWS asks IAM; None if the mesh has no such resource."""
        for grant in call_grants(Calls(calls=(self.call,), on=self.resource), place):
            if self.call in grant.actions:
                context = {key: value for named in grant.conditions.values() for key, value in named.items()}
                return Request(self.call, grant.resources[0].replace("*", "x1"), context)
        return None


Call = OnQueue | OnItem | OnStream | OnObject | OnKeys | OnResource


@dataclass(frozen=True)
class Matrix:
    """Calls and functions of a mesh."""

    place: Place

    @property
    def table(self) -> MeshTable:
        """The actor table."""
        return self.place.table

    @cached_property
    def functions(self) -> list[str]:
        """All functions: of actors, of the mesh's own, and of capabilities that the mesh file names."""
        return sorted({*self.table.actors, *(each.name for each in registry.functions_of(self.table))})

    @cached_property
    def roles(self) -> dict[str, list[str]]:
        """What each role is for: the functions that run under it, by the name of the role's function."""
        return {
            role: [each for each in self.functions if names.runner_of(each) == role]
            for role in dict.fromkeys(map(names.runner_of, self.functions))
        }

    def allows(self, role: str, call: Call) -> bool:
        """Whether the manifest of a function that runs under a role declares a call."""
        return any(self.declares(each, call) for each in self.roles[role])

    @cached_property
    def calls(self) -> tuple[Call, ...]:
        """A call of each kind on each object."""
        return (*self._on_queues(), *self._on_items(), *self._on_objects(), *self._on_resources())

    def declares(self, function: str, call: Call) -> bool:
        """Whether the manifest of a function declares a call, or what calls it takes by its role."""
        declaration = registry.function_of(function, self.table)
        caller = declaration.called_by if isinstance(declaration, Function) else Queues()
        if isinstance(call, OnStream):
            return isinstance(caller, TableChanges) and call.table == "tasks"
        if isinstance(call, OnQueue) and isinstance(caller, Queues) and call.call != "SendMessage":
            own = caller.names or (function,)
            if call.queue in own:
                return True
        return any(self._says(need, function, call) for need in self._needs[function])

    @cached_property
    def _needs(self) -> dict[str, tuple[Need, ...]]:
        """What holds of each function in this mesh."""
        return {
            function: tuple(
                need for need in registry.function_of(function, self.table).needs if need.when(self.table, function)
            )
            for function in self.functions
        }

    def _says(self, need: Need, function: str, call: Call) -> bool:
        match need, call:
            case Messages(), OnQueue():
                return call.call in need.calls and call.queue in self._names(need.queues, function)
            case Items(), OnItem():
                return (
                    (call.table, call.call in need.calls) == (need.table, True)
                    and (call.index in need.indexes if need.indexes else not call.index)
                    and _declares_keys(need, call.keys, function)
                    and (not need.attributes or (bool(call.attributes) and {*call.attributes} <= {*need.attributes}))
                )
            case Objects(), OnObject():
                patterns = self._patterns(need, function)
                return (call.call in need.calls, call.store) == (True, need.store) and _any(patterns, call.key)
            case Keys(), OnKeys():
                return call.store == need.store and any(_fits(call.key, key, function) for key in need.keys)
            case Payloads(), OnObject(call="PutObject", store="bucket"):
                to = self._names(need.to, function)
                several = sorted(to) if 0 < len(to) <= _MOST_TARGETS else [""]
                return _any((f"{PAYLOADS_PREFIX}{each}{'/' if each else ''}*" for each in several), call.key)
            case Calls(), OnResource():
                return call.call in need.calls and call.resource is need.on
            case _:
                return False

    def _patterns(self, need: Objects, function: str) -> list[str]:
        each = sorted(members(need.each, self.table, function)) if need.each is not None else [EACH]
        sink = self.table.sink
        return [
            key.replace(OWN, function)
            .replace(EACH, name)
            .replace(SUCCEEDED, sink.succeeded_prefix)
            .replace(FAILED, sink.failed_prefix)
            for key in need.keys
            for name in each
        ]

    def _names(self, queues: Iterable[str | Group], function: str) -> set[str]:
        found = [
            members(each, self.table, function) if isinstance(each, Group) else {each.replace(OWN, function)}
            for each in queues
        ]
        return set().union(*found)

    def _all_needs(self) -> Iterator[tuple[str, Need]]:
        return ((function, need) for function, needs in self._needs.items() for need in needs)

    def _on_queues(self) -> Iterator[Call]:
        queues = [*self.table.actors, *registry.queues_of(self.table)]
        for queue, call in product(queues, get_args(MessageCall)):
            yield from (OnQueue(call, queue), OnQueue(call, f"{queue}-dlq"))

    def _on_items(self) -> Iterator[Call]:
        needs = [(function, need) for function, need in self._all_needs() if isinstance(need, Items)]
        for name, table in registry.of(self.table).tables.items():
            special = {_concrete(key, function) for function, need in needs if need.table == name for key in need.keys}
            special |= {_concrete(key, OTHER_ACTOR) for _, need in needs if need.table == name for key in need.keys}
            keys = [PLAIN_KEY, *sorted(special)]
            # A call without keys, and two keys of which one belongs to somebody else.
            several = [(), *((one, other) for one, other in pairwise([*keys, PLAIN_KEY]) if one != other)]
            for call, named in product(get_args(ItemCall), [*((key,) for key in keys), *several]):
                yield OnItem(call, name, keys=named)
            yield OnStream(name)
            for index in table.indexes:
                yield OnItem("Query", name, index=index.name)
            readable = {need.attributes for _, need in needs if need.table == name and need.attributes}
            for call, attributes in product(_READS_ATTRIBUTES, sorted(readable)):
                yield OnItem(call, name, keys=(PLAIN_KEY,), attributes=attributes)
                yield OnItem(call, name, keys=(PLAIN_KEY,), attributes=(*attributes, "payload"))

    def _on_objects(self) -> Iterator[Call]:
        keys: set[tuple[Store, str]] = {("bucket", "other/x1"), ("results", "other/x1")}
        for prefix, actor in product(registry.of(self.table).prefixes, [*self.table.actors, "x1"]):
            keys.add((prefix.store, f"{prefix.name}{actor}/ab/x1.json"))
        for function, need in self._all_needs():
            if isinstance(need, Objects):
                keys |= {(need.store, pattern.replace("*", "x1")) for pattern in self._patterns(need, function)}
        for store, key in sorted(keys):
            yield from (OnObject(call, key, store) for call in get_args(ObjectCall))
            yield OnKeys(key, store)

    def _on_resources(self) -> Iterator[Call]:
        declared = registry.of(self.table)
        needs = [
            need for each in (*declared.functions.values(), *declared.actor_functions.values()) for need in each.needs
        ]
        calls = {(call, need.on) for need in needs if isinstance(need, Calls) for call in need.calls}
        for call, resource in sorted(calls, key=lambda each: (each[0], each[1].name)):
            if OnResource(call, resource).request(self.place) is not None:
                yield OnResource(call, resource)


def _any(patterns: Iterable[str], key: str) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def _declares_keys(need: Items, keys: tuple[str, ...], function: str) -> bool:
    """Whether a need is about all these keys, and they are named where it is about some."""
    if need.keys:
        return bool(keys) and all(any(_fits(key, own, function) for own in need.keys) for key in keys)
    return not need.except_keys or (
        bool(keys) and not any(_fits(key, other, function) for key in keys for other in need.except_keys)
    )


def _fits(key: str, pattern: str, function: str) -> bool:
    return fnmatchcase(key, pattern.replace(OWN, function))


def _concrete(pattern: str, function: str) -> str:
    return pattern.replace(OWN, function).replace("*", "x1")


def _store(store: Store, addresses: Addresses) -> tuple[str, str]:
    results = addresses.results
    return (results.bucket, results.prefix) if store == "results" else (addresses.bucket, "")
