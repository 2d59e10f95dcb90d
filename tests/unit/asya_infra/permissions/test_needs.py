"""The needs of manifests become the permissions that functions had before."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from asya import registry
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya_infra.addresses import Addresses
from asya_infra.permissions import (
    actors,
    common,
    dead_letters,
    gateway,
    operations,
    pauses,
    push,
    sets,
    spark,
    triggers,
)
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.needs import function_grants
from asya_infra.permissions.resources import Place
from tests.doubles.generated_tables import mesh_tables

KEY = "arn:aws:kms:eu-west-1:1:key/1"
PLACE = Addresses(
    namespace="shop", partition="aws", region="eu-west-1", account="111122223333", url_suffix="amazonaws.com"
)


ELSEWHERE = Addresses(
    namespace="shop-test",
    partition="aws-cn",
    region="cn-north-1",
    account="1",
    url_suffix="amazonaws.com.cn",
    data_bucket="lake",
    results_bucket="ends",
)


def old(name: str, p: Addresses, t: MeshTable) -> list[Grant]:
    by_kind = {
        "handler": lambda: actors.light(p, t, name, []),
        "end": lambda: actors.end(p, name, []),
        "spark": lambda: actors.enqueue(p, t, name),
        "fan_in": lambda: sets.fan_in(p, t, name),
        "pause": lambda: [
            *pauses.pause(p, name),
            *([common.sign_tokens(KEY)] if t.actors[name].pause.callback else []),
        ],
        "wait": lambda: pauses.wait(p, t, name),
    }
    own = {
        names.SINK: lambda: actors.sink(p, t),
        names.SUMP: lambda: actors.sump(p, t),
        names.CHECKPOINT: lambda: actors.checkpoint(p, t),
        names.RESUME: lambda: pauses.resume(p, t),
        names.FAN_IN_SWEEP: lambda: sets.sweep(p, t),
        names.PAUSE_SWEEP: lambda: pauses.sweep(p, t),
        names.DLQ: lambda: dead_letters.dlq(p, t),
        names.DISPATCH: lambda: spark.dispatch(p, t, "00a"),
        names.COMPLETION: lambda: spark.complete(p, t, "00a"),
        names.RECONCILE: lambda: spark.reconcile(p, "00a"),
        names.GATEWAY_INGEST: lambda: gateway.ingest(p),
        names.GATEWAY_API: lambda: [
            *gateway.api(p, t),
            *([common.sign_tokens(KEY)] if t.has_callbacks else []),
        ],
        names.GATEWAY_STREAM: lambda: gateway.stream(p, names.GATEWAY_STREAM, KEY),
        names.OPERATIONS: lambda: operations.operations(p, t),
        names.LOGS: lambda: operations.logs(p, t),
        names.REPORTS: lambda: gateway.take_reports(p, t),
        names.TASK_SWEEP: lambda: gateway.sweep(p, t),
        names.PUSH_FEED: lambda: push.feed(p),
        names.PUSH: lambda: push.deliver(p),
        names.ROLES: lambda: gateway.list_roles(p),
        names.TRIGGERS: lambda: triggers.start(p, t),
        names.WEBHOOKS: lambda: triggers.webhooks(p, t),
    }
    return own[name]() if name in own else by_kind[t.actors[name].kind]()


def parts(grants: list[Grant], name: str) -> set[tuple[str, ...]]:
    found = set()
    for grant in grants:
        conditions = json.dumps(grant.conditions, sort_keys=True)
        for action in grant.actions:
            for resource in grant.resources:
                if "s3:prefix" in conditions:
                    for prefix in grant.conditions["StringLike"]["s3:prefix"]:
                        found.add((grant.effect, action, resource, prefix))
                else:
                    found.add((grant.effect, action, resource, conditions))
                assert bool(grant.reason) or "*" not in resource, (name, resource)
    return found


@settings(max_examples=300, deadline=None)
@given(mesh_tables(), st.sampled_from((PLACE, ELSEWHERE)))
def test_same(table: MeshTable, addresses: Addresses) -> None:
    place = Place(addresses=addresses, table=table, application="00a", key=KEY)
    functions = [each.name for each in registry.functions_of(table)]
    for name in dict.fromkeys((*table.actors, *functions)):
        assert parts(function_grants(name, place), name) == parts(old(name, addresses, table), name), name
