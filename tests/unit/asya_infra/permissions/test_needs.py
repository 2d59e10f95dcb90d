"""Needs become IAM statements: each word of the vocabulary, and what holds for all functions of all meshes."""

from dataclasses import replace

import pytest
from hypothesis import given, settings

from asya import registry
from asya.manifest import ActorFunction, Function
from asya.needs import (
    EACH,
    FAILED,
    OWN,
    OWN_DEAD_LETTERS,
    SUCCEEDED,
    Calls,
    Group,
    Items,
    Messages,
    Need,
    Objects,
    Payloads,
    Resource,
    lists,
    looks_at,
    reads,
    sends,
    writes,
)
from asya.predicates import with_jobs
from asya.protocol.mesh_table import Actor, MeshTable, Sink, SparkJob
from asya.sidecar.options import KEEP_INPUT
from asya_infra.addresses import Addresses
from asya_infra.permissions.grant import Grant
from asya_infra.permissions.needs import Place, declared_grants, function_grants, grants
from tests.doubles.generated_tables import mesh_tables

ADDRESSES = Addresses(namespace="shop", partition="aws", region="r", account="1", url_suffix="u", results_bucket="ends")
ACTORS = {
    "bill": Actor(kind="handler", can_send_to=("ship",)),
    "ship": Actor(kind="handler"),
    "train": Actor(kind="spark", spark=SparkJob(job="train", linger=60)),
}
PLACE = Place(addresses=ADDRESSES, table=MeshTable(namespace="shop", actors=ACTORS), application="00a")
EVERY_NEED = [
    need
    for each in (*registry.PRODUCT.functions.values(), *registry.PRODUCT.actor_functions.values())
    for need in each.needs
]


def queues(need: Need) -> set[str]:
    """The queues that `bill` may send to."""
    return {
        arn.removeprefix("arn:aws:sqs:r:1:asya-shop-")
        for grant in grants(need, "bill", PLACE)
        for arn in grant.resources
    }


def objects(need: Need, place: Place = PLACE) -> list[str]:
    """The patterns of objects of `bill`."""
    return [arn.removeprefix("arn:aws:s3:::") for grant in grants(need, "bill", place) for arn in grant.resources]


def test_queues_are_named_one_by_one() -> None:
    assert queues(sends("x-ends", OWN, OWN_DEAD_LETTERS)) == {"x-ends", "bill", "bill-dlq"}
    assert queues(sends(Group.TARGETS)) == {"bill", "ship", "x-sink", "x-sump"}
    assert queues(sends(Group.EVERY_ACTOR)) == {"bill", "ship", "train", "x-sink", "x-sump"}
    assert queues(sends(Group.LINGERING)) == {"train"}


def test_a_group_without_members_allows_nothing() -> None:
    assert grants(sends(Group.FAN_IN), "bill", PLACE) == []
    assert grants(writes(f"inbox/{EACH}/*", each=Group.STARTED), "bill", PLACE) == []
    assert grants(Calls(calls=("execute-api:Invoke",), on=Resource.FOREIGN_GATEWAYS), "bill", PLACE) == []


def test_who_looks_at_a_queue_deletes_nothing() -> None:
    [grant] = grants(looks_at(Group.DEAD_LETTERS), "bill", PLACE)
    assert "sqs:DeleteMessage" not in grant.actions
    assert all(arn.endswith("-dlq") for arn in grant.resources)


def test_items_are_those_whose_keys_begin_so() -> None:
    [one] = grants(Items(table="sink", calls=("PutItem",), keys=(f"START#{OWN}#*",)), "bill", PLACE)
    assert one.resources == ("arn:aws:dynamodb:r:1:table/asya-shop-sink",)
    # A batch with one such key, and a call without keys, are refused.
    named = {"Null": {"dynamodb:LeadingKeys": "false"}}
    assert one.conditions == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["START#bill#*"]}, **named}
    [many] = grants(Items(table="sink", calls=("BatchGetItem",), keys=("DLQ#*",)), "bill", PLACE)
    assert many.conditions == {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["DLQ#*"]}, **named}
    [others] = grants(Items(table="sink", calls=("PutItem",), except_keys=("ROLE#*",)), "bill", PLACE)
    assert others.conditions == {"ForAllValues:StringNotLike": {"dynamodb:LeadingKeys": ["ROLE#*"]}, **named}


def test_attributes_and_keys_have_both_to_be_named() -> None:
    [grant] = grants(Items(table="tasks", calls=("GetItem",), keys=("a",), attributes=("pk",)), "bill", PLACE)
    assert grant.conditions["Null"] == {"dynamodb:LeadingKeys": "false", "dynamodb:Attributes": "false"}


def test_attributes_have_to_be_named() -> None:
    [grant] = grants(Items(table="tasks", calls=("BatchGetItem",), attributes=("pk", "status")), "bill", PLACE)
    assert grant.conditions == {
        "ForAllValues:StringEquals": {"dynamodb:Attributes": ["pk", "status"]},
        "Null": {"dynamodb:Attributes": "false"},
        "StringEqualsIfExists": {"dynamodb:Select": "SPECIFIC_ATTRIBUTES"},
    }


def test_an_index_is_not_its_table() -> None:
    [grant] = grants(Items(table="tasks", calls=("Query",), indexes=("due",)), "bill", PLACE)
    assert grant.resources == ("arn:aws:dynamodb:r:1:table/asya-shop-tasks/index/due",)


def test_objects_are_in_the_bucket_or_among_the_results() -> None:
    assert objects(reads(f"payloads/{OWN}/*")) == ["asya-shop-1-r/payloads/bill/*"]
    assert objects(reads("sump/*", store="results")) == ["ends/sump/*"]
    sink = Sink(succeeded_prefix="ok/", failed_prefix="ok/")
    place = Place(addresses=ADDRESSES, table=MeshTable(namespace="shop", actors=ACTORS, sink=sink))
    assert objects(reads(f"{SUCCEEDED}*", f"{FAILED}*", store="results"), place) == ["ends/ok/*"]
    assert objects(writes(f"runs/{EACH}/*", each=Group.LINGERING)) == ["asya-shop-1-r/runs/train/*"]


def test_only_keys_that_begin_so_are_listed() -> None:
    [grant] = grants(lists(f"inbox/{OWN}/*"), "bill", PLACE)
    assert (grant.resources, grant.conditions) == (
        ("arn:aws:s3:::asya-shop-1-r",),
        {"StringLike": {"s3:prefix": ["inbox/bill/*"]}},
    )


def test_payloads_of_few_targets_are_named_one_by_one() -> None:
    targets = ("bill", "ship", "x-sink", "x-sump")
    assert objects(Payloads(to=(Group.TARGETS,))) == [f"asya-shop-1-r/payloads/{each}/*" for each in targets]
    assert objects(Payloads()) == ["asya-shop-1-r/payloads/*"]
    many = {f"a{number}": Actor(kind="handler") for number in range(51)}
    place = Place(addresses=ADDRESSES, table=MeshTable(namespace="shop", actors={"bill": ACTORS["ship"], **many}))
    assert objects(Payloads(to=(Group.TARGETS,)), place) == ["asya-shop-1-r/payloads/*"]


def test_a_need_counts_only_where_its_predicate_holds() -> None:
    function = ActorFunction(kind="handler", entry_point="", needs=(sends("x-dispatch", when=with_jobs),))
    light = Place(addresses=ADDRESSES, table=MeshTable(namespace="shop", actors={"bill": ACTORS["bill"]}))
    assert [g for g in declared_grants(function, "bill", light) if "sqs:SendMessage" in g.actions] == []
    assert [g for g in declared_grants(function, "bill", PLACE) if "sqs:SendMessage" in g.actions] != []


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(mesh_tables())
def test_each_function_of_each_mesh_has_exact_permissions(table: MeshTable) -> None:
    """No action is a pattern, no queue and no table is one, every other pattern has its reason, and no placeholder is left."""
    place = Place(addresses=ADDRESSES, table=table, application="00a")
    for name in {*table.actors, *(each.name for each in registry.functions_of(table))}:
        for grant in function_grants(name, place):
            assert grant.actions, name
            assert grant.resources, name
            assert not any("*" in action for action in grant.actions), name
            assert grant.reason or not grant.wildcards(), (name, grant)
            assert "{" not in str(grant.statement()).replace("{'", "").replace(": {", ""), (name, grant)
            exact = [
                arn for arn in grant.resources if ":sqs:" in arn or (":dynamodb:" in arn and "/stream/" not in arn)
            ]
            assert not any("*" in arn for arn in exact), (name, grant)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(mesh_tables())
def test_only_the_crew_and_the_api_send_ends(table: MeshTable) -> None:
    """An end changes the outcome of any task, so no role with code of users may send one."""
    place = Place(addresses=ADDRESSES, table=table, application="00a")
    for name, actor in table.actors.items():
        if actor.kind in {"handler", "end", "spark"}:
            assert ADDRESSES.queue_arn("x-ends") not in sent(function_grants(name, place)), name


def sent(allowed: list[Grant]) -> set[str]:
    """The queues that may be sent to."""
    return {arn for grant in allowed if "sqs:SendMessage" in grant.actions for arn in grant.resources}


@pytest.mark.rule("12.keep_input", "12.input.writers")
@pytest.mark.parametrize("kind", registry.PRODUCT.actor_functions)
def test_actors_of_every_kind_may_keep_their_inputs_if_the_mesh_file_says_so(kind: str) -> None:
    for value in (True, False):
        actor = Actor(kind=kind, options={KEEP_INPUT.key: value})
        place = replace(PLACE, table=MeshTable(namespace="shop", actors={"keen": actor}))
        allowed = [arn for grant in function_grants("keen", place) for arn in grant.resources]
        assert [arn.partition("/")[2] for arn in allowed if "/hops/" in arn] == (["hops/*.keen.json"] if value else [])


def test_every_word_of_the_vocabulary_is_used() -> None:
    named = {each for need in EVERY_NEED if isinstance(need, Messages) for each in need.queues}
    named |= {each for need in EVERY_NEED if isinstance(need, Payloads) for each in need.to}
    named |= {need.each for need in EVERY_NEED if isinstance(need, Objects)}
    assert {each for each in named if isinstance(each, Group)} == set(Group)
    assert {need.on for need in EVERY_NEED if isinstance(need, Calls)} == set(Resource)


@pytest.mark.parametrize("function", registry.PRODUCT.functions.values(), ids=lambda each: each.name)
def test_each_function_says_what_it_needs(function: Function) -> None:
    assert function.needs
