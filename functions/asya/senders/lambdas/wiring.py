"""The Lambda entry point of x-roles, and the list that consumers of queues ask."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from asya.function.aws import clients
from asya.function.aws.settings import Settings, load_settings
from asya.function.lambdas.function import Function
from asya.senders.aws.letter_senders import LetterSenders
from asya.senders.aws.owner_claims import OwnerClaims
from asya.senders.aws.resource_answer import send_answer
from asya.senders.aws.role_list import RoleItems, RoleList
from asya.senders.lambdas.admission import Admission
from asya.senders.lambdas.role_listing import RoleListing
from asya.senders.roles import ListRequest

_CLAIMS = 10  # a batch of messages


def build_role_list(own: Function) -> RoleList:
    """Build the list that a process asks."""
    return RoleList(_items(own.settings), own.now)


def build_admission(own: Function) -> Admission:
    """Build the admission of messages to the queues of a process."""
    settings = own.settings
    table, dynamodb = settings.table_name("sink"), clients.dynamodb()
    return Admission(
        mesh=settings.table,
        actor=settings.actor,
        roles=build_role_list(own),
        owners=OwnerClaims(dynamodb, table),
        letters=LetterSenders(dynamodb, table),
        now=own.now,
        each=ThreadPoolExecutor(_CLAIMS, thread_name_prefix="claims").map if own.environment.is_threaded else map,
    )


def build_role_listing(
    own: Function, answer: Callable[[ListRequest, str, str | None], None] = send_answer
) -> RoleListing:
    """Build the function that lists the roles of a stack."""
    return RoleListing(_items(own.settings), own.telemetry, answer, own.now, own.environment.sleep)


def _items(settings: Settings) -> RoleItems:
    return RoleItems(clients.dynamodb(), settings.table_name("sink"))


@cache
def _role_listing() -> RoleListing:
    return build_role_listing(Function(load_settings(os.environ)))


def role_listing(event: Mapping[str, Any], _context: object) -> None:
    """Handle a request of CloudFormation for the custom resource of a stack."""
    _role_listing().process(event)
