"""The tests of `tests/cloud/test_pause.py` on the test kit, as they are."""

import pytest

from tests.cloud import test_pause as on_the_cloud
from tests.doubles.kit_cloud import KitCloud
from tests.simulation.same_verdict.comparable import comparable

globals().update(comparable(on_the_cloud))


@pytest.fixture(scope="module")
def notifications(paths: KitCloud) -> str:
    """The URL of a queue that gets the notifications of pauses, as a subscriber of the topic does."""
    url = str(paths.client("sqs").create_queue(QueueName="editors")["QueueUrl"])
    cloud = paths.kit.cloud

    def deliver(detail: str) -> None:
        cloud.queues.send("editors", detail, sender=None, by="sns.amazonaws.com")

    cloud.bus.subscriber = deliver
    return url
