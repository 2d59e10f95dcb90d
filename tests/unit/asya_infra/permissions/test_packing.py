"""Permissions of large meshes fit into IAM's limits, with the name of each queue."""

from asya_infra.addresses import Addresses
from asya_infra.limits.rendering import policy_length
from asya_infra.permissions.grant import Grant, document
from asya_infra.permissions.packing import SEND, PackedGrants, pack, send_policies

PLACE = Addresses(
    namespace="s" * 29, partition="aws-us-gov", region="us-gov-west-1", account="1" * 12, url_suffix="amazonaws.com"
)
OBJECTS = Grant(("s3:GetObject",), ("arn:aws:s3:::bucket/payloads/key",))


def queues(number: int) -> tuple[str, ...]:
    return tuple(PLACE.queue_arn(f"actor-{'a' * 20}-{index:03}") for index in range(number))


def all_resources(packed: PackedGrants, everywhere: tuple[str, ...]) -> set[str]:
    shared = [grant for part in send_policies(everywhere) for grant in part] if packed.sends_everywhere else []
    grants = [*packed.inline, *(grant for part in packed.managed for grant in part), *shared]
    return {resource for grant in grants for resource in grant.resources}


def assert_fits(packed: PackedGrants) -> None:
    assert policy_length(document(packed.inline)) <= 10_240
    for part in packed.managed:
        assert policy_length(document(part)) <= 6_144


def test_a_role_of_a_small_mesh_lists_its_queues() -> None:
    everywhere = queues(50)
    packed = pack([Grant(SEND, everywhere), OBJECTS, OBJECTS], everywhere)
    assert packed == PackedGrants((Grant(SEND, everywhere), OBJECTS), (), sends_everywhere=False)


def test_roles_that_send_everywhere_share_policies() -> None:
    everywhere = queues(300)
    own = PLACE.queue_arn("x-dispatch")
    packed = pack([Grant(SEND, (*everywhere, own)), OBJECTS], everywhere)
    assert packed == PackedGrants((Grant(SEND, (own,)), OBJECTS), (), sends_everywhere=True)
    assert all_resources(packed, everywhere) == {*everywhere, own, *OBJECTS.resources}
    shared = send_policies(everywhere)
    assert len(shared) <= 9  # a role may have ten, and a policy of its own
    for part in shared:
        assert policy_length(document(part)) <= 6_144


def test_a_role_that_sends_to_many_but_not_to_all_has_policies_of_its_own() -> None:
    everywhere = queues(300)
    packed = pack([Grant(SEND, everywhere[:200]), OBJECTS], everywhere)
    assert not packed.sends_everywhere
    assert OBJECTS in packed.inline
    assert all_resources(packed, everywhere) == {*everywhere[:200], *OBJECTS.resources}
    assert_fits(packed)


def test_many_small_statements_are_distributed() -> None:
    grants = [Grant(("s3:GetObject",), (f"arn:aws:s3:::{'b' * 50}-{index:03}/key",)) for index in range(200)]
    packed = pack(grants, ())
    assert all_resources(packed, ()) == {grant.resources[0] for grant in grants}
    assert_fits(packed)


def test_a_denial_is_never_replaced_by_a_shared_policy() -> None:
    everywhere = queues(60)
    denial = Grant(SEND, everywhere, effect="Deny")
    assert pack([denial], everywhere) == PackedGrants((denial,), (), sends_everywhere=False)


def test_policies_are_filled_before_the_next_one_begins() -> None:
    """A role may have ten: x-dlq of a mesh of 400 actors with long names needs all but one."""
    names = tuple(PLACE.dlq_arn(f"actor-{'a' * 20}-{index:03}") for index in range(400))
    packed = pack([Grant(("sqs:ReceiveMessage",), names)], ())
    assert all_resources(packed, ()) == set(names)
    lengths = [policy_length(document(part)) for part in packed.managed]
    assert len(lengths) <= 9
    assert min(lengths[:-1]) > 5_900
