"""Policies are as long as an account makes them."""

import pytest

from asya_infra.limits.rendering import policy_length, render


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ({"Ref": "AWS::Region"}, 15),
        ({"Ref": "AWS::AccountId"}, 12),
        ({"Fn::Sub": "arn:${AWS::Partition}:x"}, len("arn:aws-us-gov:x")),
        ({"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, ":x"]]}, len("arn:aws-us-gov:x")),
        ({"Fn::GetAtt": ["Queue", "Arn"]}, 40),
        ("plain", 5),
    ],
)
def test_intrinsic_functions_become_text(value: object, length: int) -> None:
    assert len(render(value)) == length


def test_other_values_keep_their_shape() -> None:
    assert render({"Ref": "a", "b": [1, {"Ref": "AWS::AccountId"}]}) == {"Ref": "a", "b": [1, "1" * 12]}


def test_white_space_does_not_count() -> None:
    assert policy_length({"a": ["b", "c"]}) == len('{"a":["b","c"]}')


def test_tokens_of_the_cdk_count_as_what_they_become() -> None:
    assert policy_length("arn:${Token[AWS.Partition.12]}:${Token[AWS.Region.3]}") == len('"arn::"') + 10 + 15
