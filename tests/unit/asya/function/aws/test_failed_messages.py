"""Dead letters of x-triggers as SQS takes them."""

import pytest

from asya.function.aws.failed_messages import FailedMessages
from asya.function.hop import PROBLEM
from asya.testing.services.direct import MemorySqs


@pytest.mark.rule("16.failures")
@pytest.mark.parametrize("character", ["\x00", "\x1f", "\ufffe", "\uffff", "\ud800"])
def test_16_a_problem_has_no_character_that_sqs_refuses(character: str) -> None:
    """The key of an object may have them, and the message would come again and again."""
    sqs = MemorySqs()
    FailedMessages(sqs, "url").keep(b"{}", f"no trigger asks for s3://b/\U0001f600\t{character}" + "x" * 2000)  # type: ignore[arg-type]
    text = sqs.sent["url"][0].attributes[PROBLEM]["StringValue"]
    assert text.startswith("no trigger asks for s3://b/\U0001f600\t\ufffdx")
    assert len(text) == 1024
