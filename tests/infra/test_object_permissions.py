"""The permissions of roles for objects: what a function reads, writes and lists in the buckets of a mesh."""

from typing import Any

import pytest

from tests.infra.test_permissions import BUCKET, CREW, listed, resources, statements


def test_access_to_data_is_limited_to_its_prefix(shop: Any) -> None:
    writable = resources(shop, "intake", "s3:DeleteObject")
    assert writable == {f"{BUCKET}/data/clean", f"{BUCKET}/data/clean/*"}
    readable = resources(shop, "intake", "s3:GetObject")
    assert readable == {
        *(f"{BUCKET}/{prefix}/*" for prefix in ("inbox/intake", "payloads/intake", "buffered/intake", "data/raw")),
        f"{BUCKET}/data/raw",
        "arn:<Partition>:s3:::partner-files/incoming",
        "arn:<Partition>:s3:::partner-files/incoming/*",
    }


def listable(mesh: Any, function: str) -> set[str]:
    """The patterns of the keys in the bucket of the mesh that a function may list; `everything` without a condition."""
    return {
        pattern
        for statement in statements(mesh, function)
        if "s3:ListBucket" in listed(statement["Action"]) and BUCKET in listed(statement["Resource"])
        for pattern in listed(statement.get("Condition", {}).get("StringLike", {}).get("s3:prefix", "everything"))
    }


@pytest.mark.rule("4.claim-check.readers", "6.buffered.readers")
@pytest.mark.parametrize("actor", ["intake", "score", "free", "audit"])
def test_an_actor_lists_and_reads_only_what_is_for_it(shop: Any, actor: str) -> None:
    own = {f"payloads/{actor}/*", f"inbox/{actor}/*", f"buffered/{actor}/*"}
    access = {"data/clean", "data/clean/*", "data/raw", "data/raw/*"} if actor == "intake" else set()
    assert listable(shop, actor) == own | access
    assert {f"{BUCKET}/{pattern}" for pattern in own} <= resources(shop, actor, "s3:GetObject")
    for prefix in ("payloads", "inbox", "buffered", "hops", "pending", "paused", "dlq"):
        assert f"{BUCKET}/{prefix}/*" not in resources(shop, actor, "s3:GetObject")


@pytest.mark.rule("4.claim-check.readers")
def test_no_function_lists_the_whole_bucket(shop: Any, plain: Any, example: Any) -> None:
    for mesh, namespace in ((shop, "shop"), (plain, "plain-test"), (example, "flights")):
        for role in mesh.resources("AWS::IAM::Role"):
            for policy in role["Policies"]:
                for statement in policy["PolicyDocument"]["Statement"]:
                    if "s3:ListBucket" in listed(statement["Action"]):
                        patterns = listed(statement["Condition"]["StringLike"]["s3:prefix"])
                        of_the_mesh = any(f":asya-{namespace}-" in arn for arn in listed(statement["Resource"]))
                        assert not of_the_mesh or "*" not in patterns, role["RoleName"]


@pytest.mark.rule("4.claim-check.writers")
def test_payloads_are_stored_for_the_targets_of_an_actor(shop: Any) -> None:
    stored = {arn.removeprefix(f"{BUCKET}/") for arn in resources(shop, "score", "s3:PutObject")}
    assert stored == {*(f"payloads/{name}/*" for name in ("audit", "score", *CREW)), "buffered/score/*"}
    # It may send to every actor.
    assert f"{BUCKET}/payloads/*" in resources(shop, "free", "s3:PutObject")


@pytest.mark.rule("12.input.writers")
def test_inputs_of_hops_are_written_by_actors_that_keep_them_and_read_by_the_gateway(shop: Any) -> None:
    functions = {
        role["RoleName"].removeprefix("asya-shop-").removesuffix("-<Region>")
        for role in shop.resources("AWS::IAM::Role")
        if role["RoleName"].startswith("asya-shop-")
    }

    def those_that(action: str) -> dict[str, set[str]]:
        found = {name: {arn for arn in resources(shop, name, action) if "/hops/" in arn} for name in functions}
        return {name: arns for name, arns in found.items() if arns}

    assert those_that("s3:PutObject") == {"audit": {f"{BUCKET}/hops/*.audit.json"}}
    assert those_that("s3:GetObject") == {"x-gateway-api": {f"{BUCKET}/hops/*"}}


def test_listing_a_bucket_is_limited_to_the_patterns(shop: Any) -> None:
    conditions = [
        statement["Condition"]
        for statement in statements(shop, "intake")
        if listed(statement["Resource"]) == ["arn:<Partition>:s3:::partner-files"]
    ]
    assert conditions == [{"StringLike": {"s3:prefix": ["incoming", "incoming/*"]}}]


def test_existing_buckets_hold_data_and_results(plain: Any) -> None:
    assert "arn:<Partition>:s3:::lake-results/*" in resources(plain, "x-sink", "s3:PutObject", "plain-test")
    assert "arn:<Partition>:s3:::lake-results/sump/*" in resources(plain, "x-sump", "s3:PutObject", "plain-test")
