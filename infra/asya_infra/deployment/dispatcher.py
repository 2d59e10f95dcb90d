"""Pauses the dispatcher of a mesh, so that it starts no job run while the Spark application changes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asya.protocol import names

_POLL_SECONDS = 5.0
_POLLS = 60
# The states that Lambda ends by itself, perhaps with a disabled mapping. It refuses updates meanwhile.
_CHANGING = frozenset({"Disabling", "Updating"})


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
        """Disable the mapping, and wait until it is disabled and no call can still run that it made.

        A mesh that is not deployed has none.

        Raises:
            TimeoutError: it does not stop.
        """
        lambda_ = self.session.client("lambda")
        for _ in range(_POLLS):
            mappings = self._mappings(lambda_)
            if all(mapping["State"] == "Disabled" for mapping in mappings):
                self._wait_for_calls(lambda_, mappings)
                return
            for mapping in mappings:
                if mapping["State"] not in {"Disabled", "Disabling"}:
                    _enable(lambda_, mapping, enabled=False)
            self.sleep(_POLL_SECONDS)
        raise TimeoutError("the event source mapping of x-dispatch does not stop; try again later")

    def resume(self) -> bool:
        """Enable the mapping; return whether it was paused.

        Raises:
            TimeoutError: Lambda does not let it be enabled.
        """
        lambda_ = self.session.client("lambda")
        was_paused = False
        for _ in range(_POLLS):
            mappings = self._mappings(lambda_)
            disabled = [mapping for mapping in mappings if mapping["State"] == "Disabled"]
            refused = [mapping for mapping in disabled if not _enable(lambda_, mapping, enabled=True)]
            changing = [mapping for mapping in mappings if mapping["State"] in _CHANGING]
            was_paused = was_paused or bool(disabled)
            if not refused and not changing:
                return was_paused
            self.sleep(_POLL_SECONDS)
        raise TimeoutError(
            "the event source mapping of x-dispatch stays disabled, so no job run starts: Lambda lets nobody enable it. "
            "Deploy again later, or enable it with `aws lambda update-event-source-mapping --enabled --uuid …`"
        )

    def _wait_for_calls(self, lambda_: Any, mappings: list[dict[str, Any]]) -> None:
        """Wait for the timeout of the function: until then a call may start a job run."""
        for mapping in mappings:
            self.sleep(lambda_.get_function_configuration(FunctionName=mapping["FunctionArn"])["Timeout"])

    def _mappings(self, lambda_: Any) -> list[dict[str, Any]]:
        sqs = self.session.client("sqs")
        try:
            url = sqs.get_queue_url(QueueName=names.queue_name(self.namespace, names.DISPATCH))["QueueUrl"]
        except sqs.exceptions.QueueDoesNotExist:
            return []
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        mappings: list[dict[str, Any]] = lambda_.list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
        return mappings


def _enable(lambda_: Any, mapping: dict[str, Any], *, enabled: bool) -> bool:
    """Enable or disable a mapping; False while Lambda is still changing it."""
    try:
        lambda_.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)
    except lambda_.exceptions.ResourceInUseException:
        return False
    return True
