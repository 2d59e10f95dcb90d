"""Finds the stored envelopes that a replay can start from (`protocol §12`)."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.capabilities.dead_letters import replay, set_replay
from asya.capabilities.dead_letters.replay import Sources
from asya.capabilities.dead_letters.set_replay import FanOut
from asya.function.aws.conditional_writes import is_missing
from asya.function.targets import actual_actor
from asya.protocol.envelope import Envelope
from asya.protocol.keys import buffered_prefix, safe_segment, sump_key
from asya.protocol.mesh_table import Sink
from asya.tasks.view import TaskView

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class ReplaySources:
    """Finds and reads the stored copies of an envelope.

    Args:
        bucket: the mesh's bucket.
        results_uri: the folder of x-sink; ends with `/`.

    Raises:
        ClientError, BotoCoreError: from every method, if a call to S3 fails.
    """

    def __init__(self, s3: "S3Client", bucket: str, results_uri: str, sink: Sink) -> None:
        self._s3 = s3
        self._own_uri = f"s3://{bucket}/"
        self._results_uri = results_uri
        self._failed_prefix = sink.failed_prefix

    def find(self, envelope_id: str, task: TaskView | None) -> Sources:
        """Find all stored copies of an envelope.

        Args:
            task: the record of the envelope, which names its result; None without a record.
        """
        own, results = self._own_uri, self._results_uri
        return Sources(
            result=self._result(envelope_id, task),
            sump=self._if_there(results + sump_key(envelope_id)),
            dead_letters=self._by_position(own + replay.dead_letters_folder(envelope_id)),
            hops=self._by_position(own + replay.inputs_folder(envelope_id)),
            checkpoints=self._by_position(results + replay.checkpoints_folder(envelope_id)),
        )

    def fan_out(self, stored: Envelope) -> FanOut | None:
        """Find the kept frames of the fan-out before an envelope's fan-in actor; None if they are not kept.

        A listing needs no permission to read the frames.
        """
        route = stored.route
        # A fan-out that was repeated has its frames from the fan-in actor.
        writers = [actual_actor(stored, name) for name in (route.prev[-1], route.curr)]
        folders = [f"{self._own_uri}{buffered_prefix(writer)}{safe_segment(stored.id)}/" for writer in writers]
        found = (set_replay.latest_fan_out(stored, folder, self._uris(folder)) for folder in folders)
        return max((each for each in found if each is not None), key=lambda each: each.generation, default=None)

    def read(self, uri: str) -> bytes:
        """Read an object."""
        bucket, key = _split_uri(uri)
        return self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def _result(self, envelope_id: str, task: TaskView | None) -> str | None:
        """The address of a failed envelope's result. A record may name any address, but only results may be read."""
        named = task.result_uri if task is not None and task.status == "failed" else None
        if named is not None and named.startswith(self._results_uri):
            return self._if_there(named)
        return self._if_there(f"{self._results_uri}{self._failed_prefix}{safe_segment(envelope_id)}.json")

    def _if_there(self, uri: str) -> str | None:
        bucket, key = _split_uri(uri)
        try:
            self._s3.head_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        return uri

    def _by_position(self, folder: str) -> dict[int, str]:
        return replay.by_position(folder, self._uris(folder))

    def _uris(self, folder: str) -> Iterator[str]:
        bucket, prefix = _split_uri(folder)
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return (f"s3://{bucket}/{item['Key']}" for page in pages for item in page.get("Contents", []))


def _split_uri(uri: str) -> tuple[str, str]:
    # Not parsed as a URL, because a key may contain `%2F` or `#`.
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key
