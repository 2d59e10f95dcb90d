"""The sidecar of a light actor: checks envelopes, calls the handler and routes its frames (`protocol §5`)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from asya.function.lambdas.cold_start import uncollected

with uncollected():
    from botocore.exceptions import BotoCoreError, ClientError

    from asya.capabilities.legacy.options import RESPONSES
    from asya.capabilities.legacy.responses import read_response
    from asya.function.aws.receipt import Receipt
    from asya.function.hop import Diversion, Hop
    from asya.function.lambdas.batch import BatchResponse, Record, records
    from asya.light.lambdas.hop_run import HopRun
    from asya.light.lambdas.secret_calls import load_handler, with_secrets
    from asya.protocol.events import TaskEvent
    from asya.protocol.mesh_table import Actor
    from asya.runtime.call import HandlerInvoker, Invoker
    from asya.runtime.load import LoadError
    from asya.runtime.signatures import typed
    from asya.sidecar.arrival import LATE_COPY
    from asya.sidecar.lambdas.entry_point import queue_entry_point
    from asya.sidecar.lambdas.intake import Intake, receive_batch
    from asya.sidecar.lambdas.metrics_and_spans import record_arrivals, record_diversion
    from asya.sidecar.lambdas.services import Services


class Sidecar(msgspec.Struct, frozen=True):
    """The sidecar of one actor, with its handler loaded."""

    services: Services
    call: Invoker
    deduplicates: bool = False

    def process(self, event: Mapping[str, Any]) -> BatchResponse:
        """Process one batch."""
        items = self.services.admission.admit(records(event))
        telemetry = self.services.telemetry
        record_arrivals(self.services, items)
        hops: dict[str, Hop] = {}
        last_reports: dict[str, TaskEvent] = {}
        try:
            intake = receive_batch(self.services, items)
            return intake.process(
                items,
                lambda record: self._handle(intake, record, hops, last_reports),
                lambda record: self._mark_completed(hops.get(record.message_id)),
                lambda record, error: intake.report_problem(record, error, last_reports.get(record.message_id)),
            )
        finally:
            self.services.progress.flush()
            telemetry.flush()

    def _handle(
        self, intake: Intake, record: Record, hops: dict[str, Hop], last_reports: dict[str, TaskEvent]
    ) -> list[Receipt]:
        """Process one message.

        Args:
            hops: gets the started hop by message id, without its payload; not that of a delayed envelope.
            last_reports: gets the last report of the hop.
        """
        started = intake.start(record)
        if isinstance(started, Hop) and started.is_late_copy:
            # The mark of a completed attempt follows its sends, so all of its frames have left.
            is_completed = self.deduplicates and self.services.completed_hops.is_completed(started)
            if not is_completed and self._may_have_left_frames(started):
                return HopRun(self.services, self.call, started).run()
            started = Diversion(started.envelope.id, (), LATE_COPY)
        elif isinstance(started, Hop) and self.deduplicates and self._is_duplicate(started, hops):
            started = Diversion(started.envelope.id, (), "Duplicate")
        if isinstance(started, Diversion):
            record_diversion(self.services, started.why)
            self.services.telemetry.log.warning(
                "handler not called", why=started.why, envelope_id=started.envelope_id, message_id=record.message_id
            )
            return [self.services.outbox.send(delivery) for delivery in started.deliveries]
        hops[record.message_id] = started.without_payload()
        run = HopRun(self.services, self.call, started)
        try:
            return run.run()
        finally:
            if run.last_report is not None:
                last_reports[record.message_id] = run.last_report
            if run.is_delayed:
                del hops[record.message_id]

    def _may_have_left_frames(self, hop: Hop) -> bool:
        """Whether the first run of a late copy may have died between its frames.

        A handler that returns has one frame, or a fan-out, whose list is stored before frame 0 leaves. So is a buffered list.
        """
        streams_more = hop.spec.frames == "streamed" and not hop.spec.gives_one_frame
        return streams_more or self.services.frame_buffer.load(hop.envelope) is not None

    def _is_duplicate(self, hop: Hop, hops: Mapping[str, Hop]) -> bool:
        """Whether the attempt was completed before, or runs in this batch.

        If the sends of the first copy fail, its message stays on the queue. So the second one may go.
        """
        runs_here = any(other.copy_key == hop.copy_key for other in hops.values())
        return runs_here or self.services.completed_hops.is_completed(hop)

    def _mark_completed(self, hop: Hop | None) -> None:
        """Mark a hop after its sends and before its acknowledgement (`protocol §4`)."""
        if hop is None or not self.deduplicates:
            return
        try:
            self.services.completed_hops.mark(hop, epoch_seconds=self.services.now().timestamp())
        except (ClientError, BotoCoreError) as error:
            # Everything was sent: a nack would surely repeat it, an acknowledgement only if SQS redelivers the message.
            self.services.telemetry.log.warning(
                "completed hop could not be marked", exc_info=error, envelope_id=hop.envelope.id
            )


def build_sidecar(services: Services) -> Sidecar:
    """Build the sidecar of this function's actor.

    Raises:
        LoadError: the handler cannot be loaded.
        SecretError: a secret of the actor cannot be read.
    """
    spec, name = own_actor(services)
    handler = load_handler(services, name)
    held = typed(name, handler, spec.handler_mode, lists_fan_out=spec.fan_out_lists)
    responses = partial(read_response, RESPONSES.of(spec))
    call = HandlerInvoker(held.call, held.mode, spec.fan_out_lists, responses, services.environment)
    return Sidecar(services, with_secrets(services, call), spec.deduplicate)


def own_actor(services: Services) -> tuple[Actor, str]:
    """This function's actor, and the name of its handler.

    Raises:
        LoadError: the actor has no handler.
    """
    actor = services.settings.actor
    spec = services.settings.table.actors[actor]
    if spec.handler is None:
        raise LoadError(f"actor {actor!r} is of kind {spec.kind!r} and has no handler")
    return spec, spec.handler


sidecar = queue_entry_point(build_sidecar)
