"""The roles in the templates: who may assume them."""

from typing import Any


def test_services_assume_roles_for_this_account_only(shop: Any) -> None:
    services = set()
    for role in shop.resources("AWS::IAM::Role"):
        [statement] = role["AssumeRolePolicyDocument"]["Statement"]
        assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": "<AccountId>"}}
        services.add(statement["Principal"]["Service"])
    assert services == {"lambda.amazonaws.com", "emr-serverless.amazonaws.com"}
