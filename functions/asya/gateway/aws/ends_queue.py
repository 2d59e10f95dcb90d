"""Looks after the delay of ends in the queue `x-ends`, for the deadline sweep (`protocol §13`, backstop)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asya.function.lambdas.environment import Environment
from asya.gateway.ends_delay import Delay, EndsMark, delay
from asya.tasks.aws.sweep_marks import EndsMarks

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

# A message that was just sent is consumed, and marked, within seconds.
CHECKS = 6
CHECK_SECONDS = 2.0
_COUNTS: "tuple[QueueAttributeNameType, ...]" = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)


@dataclass(frozen=True, slots=True)
class EndsQueue:
    """The queue `x-ends` of one mesh."""

    sqs: "SQSClient"
    url: str
    marks: EndsMarks
    environment: Environment

    def delay(self) -> Delay:
        """The delay of ends; waits some seconds for a sign that the queue is consumed.

        Raises:
            ClientError, BotoCoreError: the queue cannot be asked.
            TaskStoreError: the table is unavailable.
        """
        for check in range(CHECKS):
            if check:
                self.environment.sleep(CHECK_SECONDS)
            mark = EndsMark(self.marks.read("fresh"), self.marks.read("late"))
            result = delay(mark, waiting=self._waiting(), now=self.environment.now())
            if result != "unknown":
                return result
        return "unknown"

    def _waiting(self) -> int:
        attributes = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=list(_COUNTS))["Attributes"]
        return sum(int(attributes[name]) for name in _COUNTS)
