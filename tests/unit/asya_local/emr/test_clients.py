"""The clients of the stand-in leave times as they come: a list of objects takes a sixth of the time."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from botocore.awsrequest import AWSResponse

from asya_local.emr.clients import client
from asya_local.emr.settings import EmrSettings

if TYPE_CHECKING:
    from pathlib import Path

LIST = b"""<ListBucketResult><Contents><Key>data/1</Key><LastModified>2030-01-01T00:00:00.000Z</LastModified>
<ETag>"e1"</ETag><Size>1</Size></Contents></ListBucketResult>"""


class _Body(io.BytesIO):
    """The body of a response, as urllib3 streams it."""

    def stream(self, **_options: Any) -> Any:
        yield self.read()


@pytest.mark.slow
def test_times_are_texts(tmp_path: Path) -> None:
    names = ("caller_endpoint", "mark", "python", "java_home", "spark_home", "temporary", "cache")
    settings = EmrSettings(port=0, state=str(tmp_path), aws_endpoint="http://127.0.0.1:1", **dict.fromkeys(names, ""))
    keys = {"AccessKeyId": "key", "SecretAccessKey": "secret", "SessionToken": "token"}
    s3 = client("s3", settings, keys)
    s3.meta.events.register("before-send.s3", lambda request, **_: AWSResponse(request.url, 200, {}, _Body(LIST)))

    [entry] = s3.list_objects_v2(Bucket="b")["Contents"]

    assert (entry["Key"], entry["LastModified"]) == ("data/1", "2030-01-01T00:00:00.000Z")
