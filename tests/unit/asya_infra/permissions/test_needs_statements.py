"""Who may send to a queue by IAM has something to say there, and who may say something may send it (`protocol §4.statements`)."""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import Phase, given, settings

from asya import registry
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.senders.statements import Proof, Speaker, Statement, problem, speaker_of
from asya_infra.addresses import Addresses
from asya_infra.permissions.needs import Place, function_grants
from tests.doubles.generated_tables import mesh_tables

ADDRESSES = Addresses(namespace="shop", partition="aws", region="r", account="1", url_suffix="u", results_bucket="ends")
WITHOUT_ROLE = {Speaker.OUTSIDE, Speaker.OTHER_VERSION}
"""The owner of the account lets them send, or an earlier deployment has."""

IN_DEV = {("notification", names.GATEWAY_API)}
"""The functions of `asya dev` sign as one, which counts as the gateway."""


def senders_of(table: MeshTable) -> dict[str, set[str]]:
    """By queue, the functions whose roles may send there."""
    place = Place(addresses=ADDRESSES, table=table, application="00a")
    found: dict[str, set[str]] = defaultdict(set)
    for function in {*table.actors, *(each.name for each in registry.functions_of(table))}:
        for grant in function_grants(function, place):
            if "sqs:SendMessage" in grant.actions:
                for arn in grant.resources:
                    found[arn.removeprefix("arn:aws:sqs:r:1:asya-shop-")].add(function)
    return {queue: senders for queue, senders in found.items() if not queue.endswith("-dlq")}


def spoken(table: MeshTable, function: str, queue: str) -> list[Statement]:
    """What a function may say on a queue, about itself if it may say nothing else."""
    hearer = queue if queue in table.actors else registry.queues_of(table)[queue][0].name
    heard = registry.statements_at(queue, table)
    return [each for each in heard if problem(each, table, function, at=hearer, about=function) is None]


@pytest.mark.rule("4.statements")
@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(mesh_tables())
def test_who_may_send_to_a_queue_has_something_to_say_there(table: MeshTable) -> None:
    silent = {
        (each, queue)
        for queue, senders in senders_of(table).items()
        for each in senders
        if not spoken(table, each, queue)
    }
    assert silent == set()


def declared() -> Iterator[tuple[str, Speaker | str]]:
    """Who may say each statement by the manifests."""
    for each in (*registry.PRODUCT.functions.values(), *registry.PRODUCT.actor_functions.values()):
        for statement in each.hears:
            yield from ((statement.name, who) for who in (*statement.by, *statement.shown) if who not in WITHOUT_ROLE)


@pytest.mark.slow
@pytest.mark.rule("4.statements")
def test_who_may_say_something_may_send_it_in_some_mesh() -> None:
    said: set[tuple[str, Speaker | str | None]] = set()

    @settings(max_examples=150, deadline=None, phases=[Phase.generate], derandomize=True)
    @given(mesh_tables())
    def collect(table: MeshTable) -> None:
        for queue, senders in senders_of(table).items():
            for function in senders:
                groups = {
                    function,
                    speaker_of(table, function),
                    Speaker.SUBJECT,
                    *([Speaker.ITSELF] if function == queue else []),
                }
                said.update((each.name, who) for each in spoken(table, function, queue) for who in groups)

    collect()
    assert {each for each in declared() if each not in said} == IN_DEV


def test_a_function_with_a_queue_hears_something() -> None:
    deaf = [each.name for each in registry.PRODUCT.functions.values() if each.queues is not None and not each.hears]
    assert deaf == []


def test_every_word_of_the_vocabulary_is_used() -> None:
    heard = [
        statement
        for each in (*registry.PRODUCT.functions.values(), *registry.PRODUCT.actor_functions.values())
        for statement in each.hears
    ]
    assert {who for each in heard for who in (*each.by, *each.shown) if isinstance(who, Speaker)} == set(Speaker)
    assert {proof for each in heard for proof in each.shown.values()} == set(Proof)
