"""Pauses the dispatcher of a mesh, so that it starts no job run while the Spark application changes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asya.protocol import names

_POLL_SECONDS = 5.0
_POLLS = 60


@dataclass(frozen=True)
class Dispatcher:
    """The event source mapping of x-dispatch. Its messages wait in the queue meanwhile, and none of them is received.

    Attributes:
        session: a boto3 session in the account and region of the mesh.
        namespace: the namespace with its stage.
        sleep: waits for seconds.
    """

    session: Any
    namespace: str
    sleep: Callable[[float], None]

    def pause(self) -> None:
        """Disable the mapping and wait until it is disabled. A mesh that is not deployed has none."""
        lambda_ = self.session.client("lambda")
        for mapping in self._mappings(lambda_):
            if mapping["State"] not in {"Disabled", "Disabling"}:
                lambda_.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
        for _ in range(_POLLS):
            if all(mapping["State"] == "Disabled" for mapping in self._mappings(lambda_)):
                return
            self.sleep(_POLL_SECONDS)
        raise TimeoutError("the event source mapping of x-dispatch does not stop; try again later")

    def resume(self) -> bool:
        """Enable the mapping; return whether it was paused."""
        lambda_ = self.session.client("lambda")
        paused = [mapping for mapping in self._mappings(lambda_) if mapping["State"] in {"Disabled", "Disabling"}]
        for mapping in paused:
            lambda_.update_event_source_mapping(UUID=mapping["UUID"], Enabled=True)
        return bool(paused)

    def _mappings(self, lambda_: Any) -> list[dict[str, Any]]:
        sqs = self.session.client("sqs")
        try:
            url = sqs.get_queue_url(QueueName=names.queue_name(self.namespace, names.DISPATCH))["QueueUrl"]
        except sqs.exceptions.QueueDoesNotExist:
            return []
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        mappings: list[dict[str, Any]] = lambda_.list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
        return mappings
