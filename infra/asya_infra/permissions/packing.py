"""Fits the permissions of a role into the limits of IAM, without wildcards in place of names.

The inline policies of a role may have 10,240 characters. What does not fit goes into managed policies of 6,144 characters. A role
that sends to every actor uses managed policies that all such roles of a stack share, since an account may have 1,500.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from asya_infra.limits.aws_limits import MANAGED_POLICY, ROLE_INLINE_POLICIES
from asya_infra.limits.rendering import policy_length
from asya_infra.permissions.grant import Grant, document

SEND = ("sqs:SendMessage",)
# Up to this number of actors, each role lists the queues itself.
_LISTED = 50


@dataclass(frozen=True)
class PackedGrants:
    """The permissions of a role by the kind of policy.

    Attributes:
        inline: the inline policy.
        managed: the managed policies of this role alone.
        sends_everywhere: whether the role needs the shared policies for sending to every actor.
    """

    inline: tuple[Grant, ...]
    managed: tuple[tuple[Grant, ...], ...]
    sends_everywhere: bool


def pack(grants: Iterable[Grant], everywhere: Collection[str]) -> PackedGrants:
    """Distribute permissions to an inline policy and managed policies.

    Args:
        grants: the permissions; duplicates count once.
        everywhere: the ARNs of the queues of all actors.
    """
    unique = list({str(grant.statement()): grant for grant in grants}.values())
    inline = [part for grant in unique for part in _without_shared(grant, everywhere)]
    shares = len(everywhere) > _LISTED and any(_sends_to_all(grant, everywhere) for grant in unique)
    overflow: list[Grant] = []
    while policy_length(document(inline)) > ROLE_INLINE_POLICIES.usable:
        longest = max(inline, key=lambda grant: policy_length(grant.statement()))
        inline.remove(longest)
        overflow.append(longest)
    return PackedGrants(tuple(inline), tuple(chunks(overflow)), shares)


def send_policies(queues: Collection[str]) -> list[tuple[Grant, ...]]:
    """Return the shared managed policies for sending to these queues."""
    return list(chunks([Grant(SEND, tuple(sorted(queues)))]))


def chunks(grants: Sequence[Grant]) -> Iterator[tuple[Grant, ...]]:
    """Split permissions into managed policies. A statement with many resources is split, too."""
    chunk: list[Grant] = []
    for grant in grants:
        rest = grant.resources
        while rest:
            fit = _fitting(chunk, grant, rest)
            if not fit and chunk:
                yield tuple(chunk)
                chunk = []
                continue
            count = max(1, fit)  # a resource that fits nowhere has a policy of its own, which the limit gate refuses
            chunk.append(replace(grant, resources=rest[:count]))
            rest = rest[count:]
    if chunk:
        yield tuple(chunk)


def _fitting(chunk: Sequence[Grant], grant: Grant, resources: tuple[str, ...]) -> int:
    """Return how many of the resources fit into a managed policy beside its other statements."""
    low, high = 0, len(resources)
    while low < high:
        middle = (low + high + 1) // 2
        whole = policy_length(document([*chunk, replace(grant, resources=resources[:middle])]))
        low, high = (middle, high) if whole <= MANAGED_POLICY.usable else (low, middle - 1)
    return low


def _sends_to_all(grant: Grant, everywhere: Collection[str]) -> bool:
    return grant.actions == SEND and grant.effect == "Allow" and set(everywhere) <= set(grant.resources)


def _without_shared(grant: Grant, everywhere: Collection[str]) -> Iterator[Grant]:
    """Remove from a statement what the shared policies allow."""
    if len(everywhere) <= _LISTED or not _sends_to_all(grant, everywhere):
        yield grant
        return
    others = tuple(sorted(set(grant.resources) - set(everywhere)))
    if others:
        yield replace(grant, resources=others)
