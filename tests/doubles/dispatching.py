"""Makes envelopes pending and dispatches their runs."""

from datetime import UTC, datetime

from tests.doubles.heavy import HeavyWorld


def enqueue_ids(world: HeavyWorld, *ids: str, actor: str = "clean") -> None:
    """Makes these envelopes pending."""
    for envelope_id in ids:
        world.send(envelope_id)
    world.enqueue(actor)


def waiting_requests(world: HeavyWorld) -> dict[str, str]:
    """The numbers of due and of delayed dispatch requests."""
    url = world.services.settings.queue_url("x-dispatch")
    attributes = world.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return {
        "due": attributes["ApproximateNumberOfMessages"],
        "delayed": attributes["ApproximateNumberOfMessagesDelayed"],
    }


def dispatch_now(world: HeavyWorld, actor: str) -> None:
    """Runs the dispatcher for an actor, as after the delay of its request."""
    world.services.requests.clear(actor)
    world.services.requests.ensure(actor, 0, now=datetime.now(UTC))
    while world.dispatch():
        pass


def start_run(world: HeavyWorld, *ids: str) -> None:
    """Starts a run of these envelopes."""
    for envelope_id in ids:
        world.send(envelope_id, {"n": envelope_id})
    world.enqueue()
    world.dispatch()
