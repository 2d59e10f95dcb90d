"""Where replays may start from: looked for in the results and in the mesh's own bucket (`protocol §12`)."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from asya.dead_letters import replay
from asya.dead_letters.replay import Sources
from asya.messaging.aws.conditional_writes import is_missing
from asya.protocol.keys import safe_segment, sump_key
from asya.protocol.mesh_table import Sink
from asya.tasks.view import TaskView

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class ReplaySources:
    """Finds and reads what is kept of an envelope.

    Every method raises ClientError or BotoCoreError if S3 does not answer or refuses.

    Args:
        bucket: the mesh's own.
        results_uri: where x-sink writes; ends with `/`.
    """

    def __init__(self, s3: "S3Client", bucket: str, results_uri: str, sink: Sink) -> None:
        self._s3 = s3
        self._own_uri = f"s3://{bucket}/"
        self._results_uri = results_uri
        self._failed_prefix = sink.failed_prefix

    def find(self, envelope_id: str, task: TaskView | None) -> Sources:
        """All there is of an envelope.

        Args:
            task: its record, if there is one; it knows where its result is.
        """
        own, results = self._own_uri, self._results_uri
        return Sources(
            result=self._result(envelope_id, task),
            sump=self._if_there(results + sump_key(envelope_id)),
            dead_letters=self._by_position(own + replay.dead_letters_folder(envelope_id)),
            hops=self._by_position(own + replay.inputs_folder(envelope_id)),
            checkpoints=self._by_position(results + replay.checkpoints_folder(envelope_id)),
        )

    def read(self, uri: str) -> bytes:
        """An object's bytes."""
        bucket, key = _place(uri)
        return self._s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def _result(self, envelope_id: str, task: TaskView | None) -> str | None:
        """Of an envelope that failed. Its record may name any address: only those below the results are ours to read."""
        named = task.result_uri if task is not None and task.status == "failed" else None
        if named is not None and named.startswith(self._results_uri):
            return self._if_there(named)
        return self._if_there(f"{self._results_uri}{self._failed_prefix}{safe_segment(envelope_id)}.json")

    def _if_there(self, uri: str) -> str | None:
        bucket, key = _place(uri)
        try:
            self._s3.head_object(Bucket=bucket, Key=key)
        except ClientError as error:
            if is_missing(error):
                return None
            raise
        return uri

    def _by_position(self, folder: str) -> dict[int, str]:
        bucket, prefix = _place(folder)
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        found = (f"s3://{bucket}/{item['Key']}" for page in pages for item in page.get("Contents", []))
        return replay.by_position(folder, found)


def _place(uri: str) -> tuple[str, str]:
    # No URL: a key may hold `%2F`, or `#`, as it is.
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return bucket, key
