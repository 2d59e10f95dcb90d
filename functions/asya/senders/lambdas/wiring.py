"""Builds what consumers ask about senders: the list of roles, keys, and admission."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from asya.capabilities.legacy import child_ids
from asya.function.aws import clients
from asya.function.lambdas.function import Function
from asya.senders.aws.entry_items import LetterSenders, OwnerClaims
from asya.senders.aws.key_items import KeyItems
from asya.senders.aws.role_list import RoleItems, RoleList
from asya.senders.lambdas.admission import Admission
from asya.senders.task_keys import EntryKeys, MeshKeys, runs_code

_CLAIMS = 10  # a batch of messages
_MOST_KNOWN = 10_000  # raw tasks


def build_role_list(own: Function) -> RoleList:
    """Build the list that a process asks."""
    return RoleList(RoleItems(clients.dynamodb(), own.settings.table_name("sink")), own.now)


def build_keys(own: Function) -> EntryKeys | MeshKeys:
    """Build what checks and gives keys in a process; it reads its secret once, when it needs it."""
    settings, actor = own.settings, own.settings.actor
    dynamodb, table = clients.dynamodb(), settings.table_name("sink")
    items, owners = KeyItems(dynamodb, table), OwnerClaims(dynamodb, table)
    if runs_code(settings.table, actor):
        return EntryKeys(actor, cache(lambda: items.secret(actor)))
    return MeshKeys(
        cache(items.secret),
        _remembered(owners.has_entered_at),
        lambda parent_id: owners.numbered_claimant(parent_id) not in (None, child_ids.SENDERS),
    )


def _remembered(ask: Callable[[str, str], bool]) -> Callable[[str, str], bool]:
    """Answers of a table. A process remembers each yes, because a task has many reports."""
    known: set[tuple[str, str]] = set()

    def answer(envelope_id: str, actor: str) -> bool:
        pair = (envelope_id, actor)
        if pair in known:
            return True
        if not ask(envelope_id, actor):
            return False
        if len(known) >= _MOST_KNOWN:
            known.clear()
        known.add(pair)
        return True

    return answer


def build_admission(own: Function, keys: EntryKeys | MeshKeys) -> Admission:
    """Build the admission of messages to the queues of a process."""
    settings = own.settings
    table, dynamodb = settings.table_name("sink"), clients.dynamodb()
    return Admission(
        mesh=settings.table,
        actor=settings.actor,
        roles=build_role_list(own),
        owners=OwnerClaims(dynamodb, table),
        letters=LetterSenders(dynamodb, table),
        keys=keys,
        now=own.now,
        each=ThreadPoolExecutor(_CLAIMS, thread_name_prefix="claims").map if own.environment.is_threaded else map,
    )
