import json

import pytest

from asya_local.emr.access.policies import with_service_known
from asya_local.emr.access.readable_prefixes import Reach, in_buckets, readable


def policy(*statements: dict[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(action: object, resource: object, **more: object) -> dict[str, object]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def test_what_a_job_may_read() -> None:
    document = policy(
        allow("s3:GetObject", ["arn:aws:s3:::b/data/raw/*", "arn:aws:s3:::b/data/raw/2013/*", "arn:aws:s3:::b/one"]),
        allow(["s3:Get*", "s3:PutObject"], "arn:aws:s3:::b/runs/a/1/*"),
        allow("s3:PutObject", "arn:aws:s3:::b/data/out/*"),
        {"Effect": "Deny", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::b/data/secret/*"},
        allow("s3:ListBucket", "arn:aws:s3:::b"),
        allow("sqs:*", "*"),
    )

    assert readable([document]) == [Reach("b", "data/raw/*"), Reach("b", "one"), Reach("b", "runs/a/1/*")]


def test_everything_covers_everything() -> None:
    assert readable([policy(allow("*", "*")), policy(allow("s3:*", "arn:aws:s3:::b/x/*"))]) == [Reach("*", "*")]


def test_prefix_and_exactness() -> None:
    assert (Reach("b", "a/b*.csv").prefix, Reach("b", "a/b*.csv").exact) == ("a/b", False)
    assert (Reach("b", "a/b").prefix, Reach("b", "a/b").exact) == ("a/b", True)
    assert not Reach("b", "a/*.csv").covers(Reach("b", "a/x.txt"))


def test_bucket_patterns_meet_the_buckets_there_are() -> None:
    found = in_buckets([Reach("mesh-*", "data/*"), Reach("*", "x")], ["mesh-1", "cdk-q-assets-0-r"], ["cdk-*-assets-*"])
    assert found == [Reach("mesh-1", "data/*"), Reach("mesh-1", "x")]


@pytest.mark.parametrize(
    ("condition", "statements"),
    [
        ({"StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}, 1),
        ({"StringEquals": {"iam:PassedToService": ["lambda.amazonaws.com", "emr-serverless.amazonaws.com"]}}, 1),
        ({"StringLike": {"iam:passedtoservice": "emr-*"}}, 1),
        ({"ForAnyValue:StringEqualsIfExists": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}, 1),
        ({"StringEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}, 0),
        ({"StringNotEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com"}}, 0),
        ({"StringNotEquals": {"iam:PassedToService": "lambda.amazonaws.com"}}, 1),
    ],
)
def test_the_service_a_role_is_passed_to(condition: dict[str, object], statements: int) -> None:
    document = json.loads(with_service_known(policy(allow("iam:PassRole", "arn:role", Condition=condition))))

    assert len(document["Statement"]) == statements
    assert all("Condition" not in statement for statement in document["Statement"])


def test_other_conditions_stay() -> None:
    both = {
        "StringEquals": {"iam:PassedToService": "emr-serverless.amazonaws.com", "aws:PrincipalTag/team": "a"},
        "Bool": {"aws:SecureTransport": "true"},
    }
    (statement,) = json.loads(with_service_known(policy(allow("iam:PassRole", "*", Condition=both))))["Statement"]
    assert statement["Condition"] == {
        "StringEquals": {"aws:PrincipalTag/team": "a"},
        "Bool": {"aws:SecureTransport": "true"},
    }
