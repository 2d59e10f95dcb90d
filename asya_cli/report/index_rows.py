"""Reads the recent rows of the index of results: JSON lines by day, which x-sink and x-sump write."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from asya.client.objects import s3_errors
from asya.ends.result_index import RECENT_PREFIX, ResultRow

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from asya.client.connection import Connection

_THREADS = 16


def read_rows(connection: Connection, since: datetime, until: datetime) -> Iterator[ResultRow]:
    """Read the rows of the days of a time span, in any order.

    Raises:
        CommandError: S3 fails or denies access.
    """
    s3, results = connection.s3(), connection.results

    def read(key: str) -> list[ResultRow]:
        body = s3.get_object(Bucket=results.bucket, Key=key)["Body"].read()
        return [row for row in map(_row, body.splitlines()) if row is not None]

    with s3_errors("read", f"the index of results in {results.uri}"), ThreadPoolExecutor(_THREADS) as executor:
        for day in range((until.date() - since.date()).days + 1):
            prefix = f"{results.prefix}{RECENT_PREFIX}dt={since.date() + timedelta(days=day)}/"
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=results.bucket, Prefix=prefix):
                for rows in executor.map(read, [item["Key"] for item in page.get("Contents", [])]):
                    yield from rows


def _row(line: bytes) -> ResultRow | None:
    """Decode a row; None for a line of another program or a later version."""
    try:
        return msgspec.json.decode(line, type=ResultRow)
    except msgspec.MsgspecError:
        return None
