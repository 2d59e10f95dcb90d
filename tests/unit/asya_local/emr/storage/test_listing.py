"""What S3 lists for a run, and which paths it refuses."""

from __future__ import annotations

from asya.testing.services.clients import etag_of
from asya_local.emr.access.policies import ReadablePrefix
from asya_local.emr.storage.listing import list_objects, refused_paths
from tests.doubles.mirrored_bucket import MirroredS3


def test_a_listing_knows_what_it_covers() -> None:
    bucket = MirroredS3({"data/1.csv": b"1", "data/2.txt": b"2", "one": b"3", "hidden/1": b"4"})
    patterns = ("data/*.csv", "hidden/*", "none", "one")

    listing = list_objects(bucket, [ReadablePrefix("b", pattern) for pattern in patterns])

    assert listing.objects == {"b/data/1.csv": etag_of(b"1"), "b/one": etag_of(b"3")}
    assert [name for name in ("data/2.csv", "data/2.txt", "none", "hidden/1") if listing.covers(f"b/{name}")] == [
        "data/2.csv",
        "none",
    ]
    assert not listing.covers("other/none")


def test_paths_are_refused_whose_head_is_refused() -> None:
    places = [ReadablePrefix("b", f"{name}/*") for name in ("clean", "no-head", "write-only")]
    assert refused_paths(MirroredS3(), places) == ["s3://b/no-head", "s3://b/write-only", "s3://b/write-only/"]
