"""Writes rows to the index of results: one object per batch of messages and day (`protocol §11`)."""

from collections import defaultdict

from botocore.exceptions import BotoCoreError, ClientError

from asya.ends.aws.results import Results
from asya.ends.result_index import ResultRow, day_of, recent_object
from asya.function.aws.receipt import Receipt
from asya.function.nack import ServiceError

CONTENT_TYPE = "application/x-ndjson"


class NotIndexedError(ServiceError):
    """Index rows could not be written; their messages stay on the queue."""


class ResultIndex:
    """Collects rows; a message may be acknowledged only after the receipt of its row is resolved without an error.

    A redelivered message writes its row again, possibly into another object. Readers deduplicate by id and generation.
    """

    def __init__(self, results: Results) -> None:
        self._results = results
        self._pending: dict[str, list[tuple[ResultRow, Receipt]]] = defaultdict(list)

    def add(self, row: ResultRow) -> Receipt:
        """Add a row to the next flush."""
        receipt = Receipt("index row")
        self._pending[day_of(row)].append((row, receipt))
        return receipt

    def flush(self) -> None:
        """Write the pending rows, one object for each day, and resolve their receipts."""
        pending, self._pending = self._pending, defaultdict(list)
        for day, pairs in pending.items():
            key, body = recent_object(day, [row for row, _ in pairs])
            problem: NotIndexedError | None = None
            try:
                self._results.write(key, body, CONTENT_TYPE)
            except (ClientError, BotoCoreError) as error:
                problem = NotIndexedError(
                    f"{len(pairs)} index rows could not be written to {self._results.uri(key)}: {error}"
                )
            for _, receipt in pairs:
                receipt.resolve(problem)
