"""Reads the messages of the report queues, and decides which reports count (`protocol §5`, reports)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
from msgspec import UNSET, Raw
from msgspec.structs import replace

from asya.ends.results import ResultRow, row_of
from asya.gateway.statements import END, PROGRESS
from asya.protocol import names
from asya.protocol.events import PartialEvent, Report, TaskEvent, is_end
from asya.protocol.exact_json import encode_json
from asya.protocol.mesh_table import MeshTable
from asya.protocol.task_key import WrongKeyError
from asya.protocol.times import format_time, parse_time
from asya.senders.statements import problem
from asya.tasks.received_reports import BatchError, read_event, read_list
from asya.tasks.reporting.report_messages import GATEWAY_MEMBER, allowed_address


def sender_problem(mesh: MeshTable, function: str | None, report: Report, queue: str) -> str | None:
    """Why a report of this sender does not count; None if it does.

    The code of users shares a role with its sidecar, so an actor reports about itself alone. Some system functions have no code of
    users and report about any actor, as the end actors do on the queue that IAM opens to the crew alone.

    Args:
        function: the function of the role that sent the message; None for any other sender.
        report: the report.
        queue: the name of the queue in the mesh.
    """
    actor = report.actor if isinstance(report, PartialEvent) else report.data.actor
    return problem(END if queue == names.ENDS else PROGRESS, mesh, function, about=actor)


# An honest report may wait for 14 days in its queue, and for 14 more in the dead-letter queue until it is sent again.
AGE_LIMIT = timedelta(days=31)
# Of two clocks that differ.
AHEAD_LIMIT = timedelta(minutes=15)

_MEMBER = GATEWAY_MEMBER.encode()


class _Destination(msgspec.Struct):
    gateway_url: str | None = None


_members_decoder = msgspec.json.Decoder(dict[str, Raw])
_destination_decoder = msgspec.json.Decoder(_Destination)


class RefusedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report that does not count, and why."""

    problem: str
    report: Raw


@dataclass(slots=True)
class ReportMessage:
    """The content of one message.

    Attributes:
        reports: the reports for this mesh's tasks.
        foreign: the reports for foreign gateways, by address.
        rows: the rows of the index of results that the reports of ends carry, whichever gateway gets them.
        problem: why the message as a whole cannot be read; None if it can.
    """

    reports: list[Report] = field(default_factory=list)
    foreign: dict[str, list[Report]] = field(default_factory=dict)
    rows: list[ResultRow] = field(default_factory=list)
    refused: list[RefusedReport] = field(default_factory=list)
    problem: str | None = None


def read_message(
    body: bytes,
    queue: str,
    *,
    mesh: MeshTable,
    function: str | None,
    now: datetime,
    allowed_hosts: frozenset[str],
    own_gateway: str | None,
    check_key: Callable[[Report], None],
) -> ReportMessage:
    """Read a message; a report that cannot be read or is not allowed on this queue affects no other.

    Args:
        queue: the name of the queue in the mesh.
        function: the function of the role that sent the message; None for any other sender.
        allowed_hosts: the hosts that may receive reports. Calls are signed, so no message may choose another one.
        check_key: raises `WrongKeyError` if the sender does not hold the task of a report.
    """
    try:
        items = read_list(body)
    except BatchError as error:
        return ReportMessage(problem=str(error))
    message = ReportMessage()
    for raw in items:
        try:
            report, address = _read(raw, queue, allowed_hosts, own_gateway)
            _check_sender(mesh, report, function, queue)
            _check_time(report, now)
            check_key(report)
            report = replace(report, key=UNSET)
        except (BatchError, WrongKeyError) as error:
            readable = _without_key(Raw(bytes(raw).decode("utf-8", "replace").encode()))
            message.refused.append(RefusedReport(problem=str(error), report=readable))
            continue
        if isinstance(report, TaskEvent) and isinstance(report.row, Raw):
            if queue == names.ENDS:
                _take_row(message, report.row)
            report = replace(report, row=UNSET)
        if address is None or address == own_gateway:
            message.reports.append(report)
        else:
            message.foreign.setdefault(address, []).append(report)
    return message


def _without_key(raw: Raw) -> Raw:
    """The text of a refused report, which is kept, without a key that may be a good one."""
    try:
        members = _members_decoder.decode(raw)
    except msgspec.MsgspecError:
        return raw
    return raw if members.pop("key", None) is None else Raw(encode_json(members))


def _read(raw: Raw, queue: str, allowed_hosts: frozenset[str], own_gateway: str | None) -> tuple[Report, str | None]:
    report = read_event(raw)
    if queue != names.ENDS and is_end(report):
        raise BatchError("ends, pauses and waits travel on the queue x-ends, which only the crew may send to", "status")
    if _MEMBER not in bytes(raw):
        return report, None
    try:
        value = _destination_decoder.decode(raw).gateway_url
    except msgspec.ValidationError:
        raise BatchError("gateway_url must be a string", GATEWAY_MEMBER) from None
    if value is None:
        return report, None
    address = allowed_address(value, allowed_hosts, own_gateway)
    if address is None:
        raise BatchError(
            "gateway_url is no http address of an allowed host; see gateway.foreign_gateways in the mesh file",
            GATEWAY_MEMBER,
        )
    return report, address


def _take_row(message: ReportMessage, row: Raw) -> None:
    """Take the row of an end. Only the crew may send to the queue of ends, so a row elsewhere does not count.

    A row that cannot be read is kept as a refused report, and the end counts.
    """
    try:
        message.rows.append(row_of(row))
    except ValueError as error:
        problem = f"row is no row of the index of results: {error}"
        message.refused.append(RefusedReport(problem=problem, report=Raw(bytes(row))))


def _check_sender(mesh: MeshTable, report: Report, function: str | None, queue: str) -> None:
    refused = sender_problem(mesh, function, report, queue)
    if refused is not None:
        raise BatchError(refused)


def _check_time(report: Report, now: datetime) -> None:
    """Refuse a report whose time no honest reporter can have: the earliest time of its reports is a task's beginning.

    The latest note on a job run hides all earlier ones.
    """
    times = {"at": report.at}
    if isinstance(report, TaskEvent) and report.data.run is not None:
        times["data.run.at"] = report.data.run.at
    for name, text in times.items():
        if not now - AGE_LIMIT <= parse_time(text) <= now + AHEAD_LIMIT:
            raise BatchError(
                f"{name} is {text}; it may be up to {AGE_LIMIT.days} days before and"
                f" {AHEAD_LIMIT.seconds // 60} minutes after the receipt, {format_time(now)}",
                name,
            )
