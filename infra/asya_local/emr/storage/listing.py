"""Asks S3, as the run, which objects it has and which it refuses."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from asya_local.emr.access.policies import matches
from asya_local.emr.storage.changes import Listing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from asya_local.emr.access.policies import ReadablePrefix

_logger = logging.getLogger(__name__)
TRANSFERS = 8
"""The number of requests at the same time."""
DENIED = frozenset({"AccessDenied", "403", "AllAccessDisabled", "Forbidden"})
_MISSING = frozenset({"404", "NoSuchBucket", "NoSuchKey", "NotFound"})
_SEALED = frozenset({"400", "InvalidObjectState", "InvalidRequest"})
"""The object is archived, or encrypted with a key that S3 does not keep. HEAD names the latter `400`."""


class MirrorError(Exception):
    """S3 refuses a write of the job, or fails. On EMR Serverless the job itself would fail."""


def mirror_error(action: str, name: str, error: Exception) -> MirrorError:
    """Return the error of an action on an object, with the kind of error first."""
    text = str(error)
    kind = "AccessDenied" if any(code in text for code in DENIED) else type(error).__name__
    return MirrorError(f"{kind}: {action} on s3://{name}: {text}")


def is_unreadable(error: Exception) -> bool:
    """Return whether the error says that an object is missing, not for the job, or readable by nobody: the job does not see it."""
    return isinstance(error, ClientError) and error.response["Error"]["Code"] in DENIED | _MISSING | _SEALED


def list_objects(s3: Any, prefixes: Iterable[ReadablePrefix]) -> Listing:
    """List the objects under the prefixes with their ETags.

    Raises:
        MirrorError: S3 fails. A list that IAM refuses is left out.
    """
    asked = list(prefixes)
    with ThreadPoolExecutor(TRANSFERS) as pool:
        found = list(pool.map(lambda prefix: _objects(s3, prefix), asked))
    complete = tuple(prefix for prefix, objects in zip(asked, found, strict=True) if objects is not None)
    return Listing({name: etag for objects in found if objects for name, etag in objects.items()}, complete)


def _objects(s3: Any, prefix: ReadablePrefix) -> dict[str, str] | None:
    """Return the objects under one prefix; None if IAM refuses the list."""
    bucket, pattern = prefix.bucket, prefix.pattern
    try:
        if prefix.is_single_object:
            return {f"{bucket}/{pattern}": str(s3.head_object(Bucket=bucket, Key=pattern)["ETag"])}
        return {
            f"{bucket}/{entry['Key']}": str(entry["ETag"])
            for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix.key_prefix)
            for entry in page.get("Contents", [])
            if matches(pattern, entry["Key"])
        }
    except (ClientError, BotoCoreError) as error:
        if not is_unreadable(error):
            raise mirror_error("s3:ListBucket", f"{bucket}/{pattern}", error) from error
        if prefix.is_single_object:
            return {}
        _logger.warning("the job cannot list s3://%s/%s: %s", bucket, pattern, error)
        return None


def refused_paths(s3: Any, folders: Iterable[ReadablePrefix]) -> list[str]:
    """Return the paths that S3A could not open as the run: before it lists a folder, it sends HEAD to its key.

    Returns:
        `s3://bucket/folder` for the folder itself, `s3://bucket/folder/` for everything below it.
    """
    places = [(place.bucket, f"{place.folder}{below}") for place in folders for below in ("", "/")]
    with ThreadPoolExecutor(TRANSFERS) as pool:
        refused = pool.map(lambda each: _refuses_head(s3, *each), places)
        return [f"s3://{bucket}/{key}" for (bucket, key), denied in zip(places, refused, strict=True) if denied]


def _refuses_head(s3: Any, bucket: str, key: str) -> bool:
    # MiniStack checks `folder/` as `folder`, so another key stands for those below.
    name = f"{key}_" if key.endswith("/") else key
    try:
        s3.head_object(Bucket=bucket, Key=name)
    except ClientError as error:
        return error.response["Error"]["Code"] in DENIED
    return False
