"""`python -m asya_infra.permissions.page` writes docs/reference/permissions.md: what functions may do, tables and prefixes."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from asya import registry
from asya.manifest import ActorFunction, Clock, Deployments, Function, Queues, Requests, TableChanges
from asya.needs import EACH, OWN, Calls, Group, ItemCall, Items, Keys, Messages, Need, Objects, Payloads
from asya.predicates import always
from asya.protocol import names
from asya.protocol.keys import PAYLOADS_PREFIX, RESULTS_PREFIX
from asya.protocol.table_keys import EXPIRY
from asya.stores import Prefix, Table

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "permissions.md"
_HEAD = """# Permissions

Each function has a role of its own, which may do what this page lists, and write its own logs. The steps of the clock
share one. A function with a queue takes messages from it. `python -m asya_infra.permissions.page` writes the page from the
[manifests](../decisions/manifests.md#needs).

Beside it, a role may do what the mesh file grants its actor ([`access` and `secrets`](mesh-file.md)), use the
[customer's key](../how-to/encrypt-with-your-key.md) for that, and send spans, if the mesh file asks for them. Job runs have
[roles of their own](../security.md#code-of-jobs).

Queues, tables and prefixes are those of the mesh: queue `x-ends` is `asya-{namespace}-x-ends`. `{actor}` is the name of the
actor, `{succeeded}` and `{failed}` are the prefixes of results in the mesh file.
"""
_CALLED_BY = {
    Requests: "Called by the gateway's API.",
    TableChanges: "Called with the changes of the tasks table, whose stream it reads.",
    Deployments: "Called by CloudFormation during a deployment.",
}


def as_page() -> str:
    """Return the page: the functions of actors by kind, those of the mesh, and what they keep."""
    declared = registry.PRODUCT
    kinds = [each for _, function in sorted(declared.actor_functions.items()) for each in _of_kind(function)]
    own = {**declared.functions, **declared.steps}
    functions = [each for _, function in sorted(own.items()) for each in _of_mesh(function)]
    return (
        "\n".join(
            [
                *(_HEAD, "## Actors by kind", "", *kinds, "## Functions of the mesh", "", *functions),
                *(*_tables(registry.PRODUCT.tables.values()), *_prefixes(registry.PRODUCT.prefixes)),
            ]
        ).rstrip()
        + "\n"
    )


def _tables(tables: Iterable[Table]) -> Iterator[str]:
    yield from ("## Tables", "", "| table | has | indexes |", "|---|---|---|")
    for table in sorted(tables, key=lambda each: each.name):
        indexes = (f"`{index.name}` by `{index.partition}`, `{index.sort}`" for index in table.indexes)
        yield f"| `{table.name}` | {table.holds} | {'; '.join(indexes)} |"
    yield from ("", f"Each has the keys `pk` and `sk`, and the time to live `{EXPIRY}`.", "")


def _prefixes(prefixes: Iterable[Prefix]) -> Iterator[str]:
    yield from ("## Prefixes", "", "| prefix | has | kept for |", "|---|---|---|")
    for prefix in prefixes:
        kept = f"{prefix.kept} days" if isinstance(prefix.kept, int) else f"`storage.retention.{prefix.kept}`"
        place = RESULTS_PREFIX if prefix.store == "results" else ""
        yield f"| `{place}{prefix.name}` | {prefix.holds} | {kept} |"
    yield ""


def _of_kind(function: ActorFunction) -> Iterator[str]:
    yield from (f"### Kind `{function.kind}`", "")
    if also := (*function.crew, *function.on_demand):
        yield from (f"Also {', '.join(f'`{name}`' for name in also)}.", "")
    yield from _table(function.needs, "{actor}")


def _of_mesh(function: Function) -> Iterator[str]:
    yield from (f"### {function.name}", "", _caller(function), "")
    if function.name == names.CLOCK:
        steps = ", ".join(f"[`{step}`](#{step})" for step in registry.PRODUCT.steps)
        yield from (f"Its role may do what its steps need: {steps}.", "")
    else:
        yield from _table(function.needs, function.name)


def _caller(function: Function) -> str:
    caller = function.called_by
    if isinstance(caller, Queues):
        return f"Takes messages from {', '.join(f'`{queue}`' for queue in caller.names or (function.name,))}."
    if isinstance(caller, Clock):
        often = f"every {'minute' if caller.minutes == 1 else f'{caller.minutes} minutes'}"
        return f"A step of [`{names.CLOCK}`](#{names.CLOCK}), {often}." if function.is_step else f"Called {often}."
    return _CALLED_BY[type(caller)]


def _table(needs: Iterable[Need], name: str) -> Iterator[str]:
    yield from ("| calls | on | when |", "|---|---|---|")
    for need in needs:
        calls, target = _row(need, name)
        when = "" if need.when is always else _sentence(need.when.__doc__ or "")
        yield f"| {calls} | {target} | {when} |"
    yield ""


def _row(need: Need, name: str) -> tuple[str, str]:
    """Return the calls of a need, and what they are about."""
    match need:
        case Messages():
            return _code(need.calls, "sqs"), _queues(need.queues, name)
        case Items():
            calls = (
                "all calls on items" if len(need.calls) == len(get_args(ItemCall)) else _code(need.calls, "dynamodb")
            )
            return calls, _items(need, name)
        case Objects():
            each = "" if need.each is None else f", where {EACH} is each of {need.each.value}"
            return _code(need.calls, "s3"), _keys(need.keys, need.store, name) + each
        case Keys():
            return "`s3:ListBucket`", _keys(need.keys, need.store, name)
        case Payloads():
            return "`s3:PutObject`", f"`{PAYLOADS_PREFIX}` below the names of {_queues(need.to, name) or 'all actors'}"
        case Calls():
            return ", ".join(f"`{call}`" for call in need.calls), need.on.value


def _items(need: Items, name: str) -> str:
    indexes = f", index {_listed(need.indexes)}" if need.indexes else ""
    keys = f", keys {_listed(key.replace(OWN, name) for key in need.keys)}" if need.keys else ""
    keys += f", all keys but {_listed(need.except_keys)}" if need.except_keys else ""
    attributes = f", only {_listed(need.attributes)}" if need.attributes else ""
    return f"table `{need.table}`{indexes}{keys}{attributes}"


def _keys(keys: Iterable[str], store: str, name: str) -> str:
    shown = (key.replace(OWN, name) for key in keys)
    return f"{store}: {_listed(shown)}"


def _queues(queues: Iterable[str | Group], name: str) -> str:
    return ", ".join(each.value if isinstance(each, Group) else f"`{each.replace(OWN, name)}`" for each in queues)


def _code(calls: Iterable[str], service: str) -> str:
    return ", ".join(f"`{service}:{call}`" for call in calls)


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(f"`{text}`" for text in texts)


def _sentence(docstring: str) -> str:
    """Return the first sentence of a predicate as a part of a row."""
    first = docstring.strip().splitlines()[0].rstrip(".")
    return first[:1].lower() + first[1:]


if __name__ == "__main__":
    PAGE.write_text(as_page(), encoding="utf-8")
