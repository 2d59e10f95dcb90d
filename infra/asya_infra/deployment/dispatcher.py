"""Pauses the dispatcher of a mesh, so that it starts no job run while the Spark application changes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from asya.protocol import names

_POLL_SECONDS = 5.0
_POLLS = 60
# The states that Lambda ends by itself, perhaps with a disabled mapping. It refuses updates meanwhile.
_CHANGING = frozenset({"Disabling", "Updating"})
_OFF = frozenset({"Disabled", "Disabling"})

# The tag of a mapping that a deployment disabled. It outlives a killed deployment, and goes with the mapping.
_MARK = "asya:paused-by-deployment"

# resumed: a deployment had paused it · disabled: somebody else disabled it, and it stays so · running: neither
Resumption = Literal["resumed", "disabled", "running"]


@dataclass(frozen=True)
class Dispatcher:
    """The event source mapping of x-dispatch. Its messages wait in the queue meanwhile, and none of them is received.

    An operator may disable the mapping too. Only a mapping that a deployment disabled is enabled again.

    Attributes:
        session: a boto3 session in the account and region of the mesh.
        namespace: the namespace with its stage.
        sleep: waits for seconds.
    """

    session: Any
    namespace: str
    sleep: Callable[[float], None]
    # CloudFormation may remove the mark when it updates the tags of the mapping.
    _marked: set[str] = field(default_factory=set, init=False, repr=False)

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
                if mapping["State"] == "Enabled":
                    self._mark(lambda_, mapping)
                    _enable(lambda_, mapping, enabled=False)
            self.sleep(_POLL_SECONDS)
        raise TimeoutError("the event source mapping of x-dispatch does not stop; try again later")

    def resume(self) -> Resumption:
        """Enable the mapping if a deployment disabled it.

        Raises:
            TimeoutError: Lambda does not let it be enabled.
        """
        lambda_ = self.session.client("lambda")
        was_paused = False
        for _ in range(_POLLS):
            mappings = self._mappings(lambda_)
            paused = [mapping for mapping in mappings if self._is_marked(lambda_, mapping)]
            disabled = [mapping for mapping in paused if mapping["State"] == "Disabled"]
            was_paused = was_paused or bool(disabled)
            refused = [mapping for mapping in disabled if not _enable(lambda_, mapping, enabled=True)]
            if not refused and not any(mapping["State"] in _CHANGING for mapping in paused):
                for mapping in paused:
                    self._unmark(lambda_, mapping)
                if was_paused:
                    return "resumed"
                return "disabled" if any(mapping["State"] in _OFF for mapping in mappings) else "running"
            self.sleep(_POLL_SECONDS)
        raise TimeoutError(
            "the event source mapping of x-dispatch stays disabled, so no job run starts: Lambda lets nobody enable it. "
            "Deploy again later, or enable it with `aws lambda update-event-source-mapping --enabled --uuid …`"
        )

    def _mark(self, lambda_: Any, mapping: dict[str, Any]) -> None:
        """Mark a mapping, before it is disabled, so that the next deployment resumes it if this one is killed."""
        if mapping["UUID"] not in self._marked:
            lambda_.tag_resource(Resource=mapping["EventSourceMappingArn"], Tags={_MARK: "true"})
            self._marked.add(mapping["UUID"])

    def _is_marked(self, lambda_: Any, mapping: dict[str, Any]) -> bool:
        if mapping["UUID"] in self._marked:
            return True
        if _MARK not in lambda_.list_tags(Resource=mapping["EventSourceMappingArn"]).get("Tags", {}):
            return False
        self._marked.add(mapping["UUID"])
        return True

    def _unmark(self, lambda_: Any, mapping: dict[str, Any]) -> None:
        """Remove the mark of a mapping that is enabled again."""
        lambda_.untag_resource(Resource=mapping["EventSourceMappingArn"], TagKeys=[_MARK])
        self._marked.discard(mapping["UUID"])

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
        mappings = lambda_.list_event_source_mappings(EventSourceArn=arn)["EventSourceMappings"]
        return [mapping for mapping in mappings if mapping["State"] != "Deleting"]


def _enable(lambda_: Any, mapping: dict[str, Any], *, enabled: bool) -> bool:
    """Enable or disable a mapping; False while Lambda is still changing it."""
    try:
        lambda_.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)
    except lambda_.exceptions.ResourceInUseException:
        return False
    return True
