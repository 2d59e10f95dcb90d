"""Access to folders in S3, as Hadoop's S3A and other clients ask for them."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import pytest

from asya.protocol.data_references import pattern_of_prefix
from asya.protocol.keys import S3Prefix
from asya_infra.addresses import Addresses
from asya_infra.mesh_file.actor_model import AccessEntry
from asya_infra.mesh_file.sections import read_section
from asya_infra.permissions.access import access_grants, folder_grants
from asya_infra.permissions.evaluation import Request, is_allowed
from asya_infra.permissions.grant import Grant, document
from asya_infra.permissions.job_runs import scratch

PLACE = Addresses(namespace="shop", partition="aws", region="r", account="1", url_suffix="amazonaws.com")
DATA = "arn:aws:s3:::asya-shop-1-r"
S3A_WRITES = ("s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload")


def allowed(grants: Sequence[Grant], action: str, resource: str, prefix: str | None = None) -> bool:
    """Evaluate the grants; `prefix` is the prefix of a listing."""
    return any(
        action in grant.actions
        and any(fnmatchcase(resource, pattern) for pattern in grant.resources)
        and (
            not grant.conditions
            or (
                prefix is not None
                and any(fnmatchcase(prefix, each) for each in grant.conditions["StringLike"]["s3:prefix"])
            )
        )
        for grant in grants
    )


def grants_of(*, by_s3a: bool = True, read: Sequence[str] = (), write: Sequence[str] = ()) -> list[Grant]:
    entry = read_section(AccessEntry, {"bucket": "data", "read": list(read), "write": list(write)})
    return access_grants([entry], PLACE, by_s3a=by_s3a)


@pytest.mark.parametrize("by_s3a", [False, True])
@pytest.mark.parametrize("key", ["clean", "clean/", "clean/month=1/part.parquet"])
def test_a_folder_is_read_by_its_name(key: str, by_s3a: bool) -> None:
    """`spark.read.parquet(data.uri("clean"))` is HEAD on `clean`, then a listing of `clean/`."""
    grants = grants_of(read=["clean/*"], by_s3a=by_s3a)
    assert allowed(grants, "s3:GetObject", f"{DATA}/data/{key}")
    assert allowed(grants, "s3:ListBucket", DATA, prefix=f"data/{key}")
    assert not allowed(grants, "s3:PutObject", f"{DATA}/data/{key}")


@pytest.mark.parametrize("key", ["clea", "cleaner", "clean-2/part", "raw", "raw/part"])
def test_neighbors_of_a_folder_are_not_granted(key: str) -> None:
    grants = grants_of(read=["clean/*"], write=["clean/*"])
    assert not any(allowed(grants, action, f"{DATA}/data/{key}") for action in S3A_WRITES)
    assert not allowed(grants, "s3:ListBucket", DATA, prefix=f"data/{key}")
    assert not allowed(grants, "s3:ListBucket", DATA, prefix="data/")
    assert not allowed(grants, "s3:ListBucket", DATA)


@pytest.mark.parametrize("key", ["stats", "stats/", "stats/_SUCCESS", "stats/__magic_job-1/part.pending"])
def test_s3a_writes_a_folder_only_if_it_may_read_it(key: str) -> None:
    grants = grants_of(write=["stats/*"])
    assert all(allowed(grants, action, f"{DATA}/data/{key}") for action in S3A_WRITES)
    assert allowed(grants, "s3:ListBucket", DATA, prefix=f"data/{key}")
    assert allowed(grants, "s3:ListBucketMultipartUploads", DATA)


def test_a_light_actor_may_write_what_it_may_not_read() -> None:
    grants = grants_of(write=["stats/*"], by_s3a=False)
    assert allowed(grants, "s3:PutObject", f"{DATA}/data/stats/a.csv")
    assert not allowed(grants, "s3:GetObject", f"{DATA}/data/stats/a.csv")
    assert not allowed(grants, "s3:ListBucketMultipartUploads", DATA)


def test_readers_do_not_list_unfinished_uploads() -> None:
    assert not allowed(grants_of(read=["clean/*"]), "s3:ListBucketMultipartUploads", DATA)


def test_what_s3a_writes_is_granted_once() -> None:
    """A policy has 6,144 characters, so reading is not repeated."""
    grants = grants_of(read=["raw/*", "clean/*"], write=["clean/*"])
    reads = [grant.resources for grant in grants if grant.actions == ("s3:GetObject",)]
    assert reads == [(f"{DATA}/data/raw", f"{DATA}/data/raw/*")]


def test_scratch_is_written_by_s3a() -> None:
    grants = scratch(PLACE, "crunch")
    for key in ("crunch", "crunch/0000000042/x/0/part"):
        assert all(allowed(grants, action, f"{DATA}/data/scratch/{key}") for action in S3A_WRITES)
    assert not allowed(grants, "s3:GetObject", f"{DATA}/data/scratch/crunch-2/x")


@pytest.mark.parametrize(
    ("pattern", "keys"),
    [
        ("*", ("*",)),
        ("/*", ("/*",)),
        ("one.csv", ("one.csv",)),
        ("raw*", ("raw*",)),
        ("raw/*.csv", ("raw/*.csv",)),
        ("a/*/b/*", ("a/*/b", "a/*/b/*")),
    ],
)
def test_only_a_pattern_of_a_whole_folder_has_a_folder(pattern: str, keys: tuple[str, ...]) -> None:
    objects, listing = folder_grants(S3Prefix("lake", ""), [pattern], [], PLACE)
    assert objects.resources == tuple(f"arn:aws:s3:::lake/{key}" for key in keys)
    assert listing.conditions == {"StringLike": {"s3:prefix": sorted(keys)}}


@pytest.mark.rule("1.references.list.access")
@pytest.mark.parametrize(
    ("read", "prefix", "is_listed"),
    [
        ("raw/*", "raw/", True),
        ("raw/*", "raw/2026/", True),
        ("raw/*", "raw/2026-01", True),
        ("raw/*", "", False),
        ("raw/*", "ra", False),
        ("raw/*", "raw-2/", False),
        ("raw/*", "clean/", False),
        ("raw/2026-*", "raw/2026-", True),
        ("raw/2026-*", "raw/", False),
        ("raw/*.csv", "raw/", False),
        ("*", "", True),
        ("*", "raw/", True),
    ],
)
@pytest.mark.parametrize("by_s3a", [False, True])
def test_1_reading_a_prefix_grants_its_list_and_no_wider_one(
    read: str, prefix: str, is_listed: bool, by_s3a: bool
) -> None:
    grants = grants_of(read=[read], by_s3a=by_s3a)
    assert allowed(grants, "s3:ListBucket", DATA, prefix=f"data/{prefix}") == is_listed
    assert not allowed(grants, "s3:ListBucket", DATA, prefix=f"results/{prefix}")
    assert not allowed(grants, "s3:ListBucket", f"{DATA}-2", prefix=f"data/{prefix}")


@pytest.mark.rule("1.references.list.access")
@pytest.mark.parametrize("prefix", ["", "raw/", "raw/2026-", "raw/[a]?", "a b+%/é/", "raw//", "raw/${x}/"])
def test_1_the_entry_that_a_refused_list_names_grants_it(prefix: str) -> None:
    statements = document(grants_of(read=[pattern_of_prefix(prefix)]))["Statement"]
    assert is_allowed(statements, Request("s3:ListBucket", DATA, {"s3:prefix": f"data/{prefix}"}))
