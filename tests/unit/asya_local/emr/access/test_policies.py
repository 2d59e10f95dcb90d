"""The policies of a job: the objects that it may read."""

import json

from asya_local.emr.access.policies import (
    ReadablePrefix,
    expand_buckets,
    folders,
    readable_prefixes,
)


def policy(*statements: dict[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(action: object, resource: object, **more: object) -> dict[str, object]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def test_a_job_may_read_the_objects_that_its_policies_allow() -> None:
    document = policy(
        allow("s3:GetObject", ["arn:aws:s3:::b/data/raw/*", "arn:aws:s3:::b/data/raw/2013/*", "arn:aws:s3:::b/one"]),
        allow(["s3:Get*", "s3:PutObject"], "arn:aws:s3:::b/runs/a/1/*"),
        allow("s3:PutObject", "arn:aws:s3:::b/data/out/*"),
        {"Effect": "Deny", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/data/secret/*"},
        allow("s3:ListBucket", "arn:aws:s3:::b"),
        allow("sqs:*", "*"),
    )

    assert readable_prefixes([document]) == [
        ReadablePrefix("b", "data/raw/*"),
        ReadablePrefix("b", "one"),
        ReadablePrefix("b", "runs/a/1/*"),
    ]


def test_the_folders_of_a_job_are_those_that_it_may_read_or_write() -> None:
    names = ["raw/*", "raw/2013/*", "one", "*", "a*/b/*", "part*", "tables/*.csv"]
    document = policy(
        allow("s3:GetObject", [f"arn:aws:s3:::b/{name}" for name in names]),
        allow(["s3:PutObject"], "arn:aws:s3:::b/out/*"),
        allow("s3:DeleteObject", "arn:aws:s3:::b/gone/*"),
    )
    found = folders([document])
    assert [(each.pattern, each.folder) for each in found] == [
        ("out/*", "out"),
        ("raw/*", "raw"),
        ("raw/2013/*", "raw/2013"),
    ]


def test_a_policy_for_everything_covers_all_others() -> None:
    assert readable_prefixes([policy(allow("*", "*")), policy(allow("s3:*", "arn:aws:s3:::b/x/*"))]) == [
        ReadablePrefix("*", "*")
    ]


def test_a_pattern_without_wildcard_is_a_single_object() -> None:
    assert (ReadablePrefix("b", "a/b*.csv").key_prefix, ReadablePrefix("b", "a/b*.csv").is_single_object) == (
        "a/b",
        False,
    )
    assert (ReadablePrefix("b", "a/b").key_prefix, ReadablePrefix("b", "a/b").is_single_object) == ("a/b", True)
    assert not ReadablePrefix("b", "a/*.csv").covers(ReadablePrefix("b", "a/x.txt"))


def test_bucket_patterns_expand_to_existing_buckets_without_code_buckets() -> None:
    prefixes = expand_buckets(
        [ReadablePrefix("mesh-*", "data/*"), ReadablePrefix("*", "x")],
        ["mesh-1", "cdk-q-assets-0-r"],
        ["cdk-*-assets-*"],
    )
    assert prefixes == [ReadablePrefix("mesh-1", "data/*"), ReadablePrefix("mesh-1", "x")]
