"""The uploaded code of a mesh: its place in the bucket of `cdk bootstrap`."""

from typing import Any

PREFIX = "asya-shop/"


def test_all_code_of_a_mesh_has_its_prefix(shop: Any) -> None:
    """Job roles may be granted this prefix, so a deployment leaves running jobs the code that they were started with."""
    keys = [function["Code"]["S3Key"] for function in shop.resources("AWS::Lambda::Function")]
    keys += [layer["Content"]["S3Key"] for layer in shop.resources("AWS::Lambda::LayerVersion")]
    assert all(key.startswith(PREFIX) for key in keys)
    variables = shop.function("x-dispatch")["Environment"]["Variables"]
    uris = [variables[f"ASYA_JOB_{name}"] for name in ("ENTRY_POINT", "PY_FILES", "CODE")]
    assert all(uri.partition("/")[2].partition("/")[2].partition("/")[2].startswith(PREFIX) for uri in uris)


def test_the_qualifier_of_the_bootstrap_names_the_bucket(plain: Any) -> None:
    buckets = {function["Code"]["S3Bucket"] for function in plain.resources("AWS::Lambda::Function")}
    assert buckets == {"cdk-team-assets-<AccountId>-<Region>"}
