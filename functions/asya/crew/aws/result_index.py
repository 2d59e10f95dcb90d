"""The index of results, as x-sink and x-sump write it: the rows of one batch of messages are one object (`protocol §11`)."""

from collections import defaultdict

from botocore.exceptions import BotoCoreError, ClientError

from asya.crew.aws.results import Results
from asya.crew.result_index import ResultRow, day_of, recent_object
from asya.messaging.aws.receipt import Receipt

CONTENT_TYPE = "application/x-ndjson"


class NotIndexedError(RuntimeError):
    """The rows could not be written; the messages stay until they can."""


class ResultIndex:
    """Gathers rows; a message may be acked only when the ticket of its row is settled without an error.

    A message that is received again gives its row again, maybe in other company and so in another object: readers go by id and
    generation.
    """

    def __init__(self, results: Results) -> None:
        self._results = results
        self._waiting: dict[str, list[tuple[ResultRow, Receipt]]] = defaultdict(list)

    def add(self, row: ResultRow) -> Receipt:
        """Hand over a row."""
        receipt = Receipt("index row")
        self._waiting[day_of(row)].append((row, receipt))
        return receipt

    def flush(self) -> None:
        """Write the rows that wait, an object for each day, and settle the tickets."""
        waiting, self._waiting = self._waiting, defaultdict(list)
        for day, pairs in waiting.items():
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
