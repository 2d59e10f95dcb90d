"""The reserved words of DynamoDB, written down."""

from moto.dynamodb.parsing.reserved_keywords import ReservedKeywords

from asya.testing.dynamo.expressions import RESERVED_WORDS


def test_they_are_those_that_moto_knows() -> None:
    assert set(ReservedKeywords.get_reserved_keywords()) == RESERVED_WORDS
