"""The event pattern for commits of resident runs fits into a rule, and matches the commits of every actor that lingers."""

import re

import pytest

from asya.protocol.job_runs import COMMIT_FILE, Place, RunFolder
from asya_infra.commit_events import commit_pattern
from asya_infra.limits.aws_limits import EVENT_PATTERN
from asya_infra.limits.rendering import policy_length

BUCKET = "asya-shop-${Token[AWS.AccountId.3]}-${Token[AWS.Region.4]}"


@pytest.mark.parametrize("count", [1, 20, 45, 500])
def test_the_pattern_fits_and_matches_the_commits_of_each_actor(count: int) -> None:
    actors = [f"actor-with-a-long-name-{number:03}" for number in range(count)]
    pattern = commit_pattern(BUCKET, actors)
    assert policy_length(pattern) <= EVENT_PATTERN.value
    wildcards = [each["wildcard"] for each in pattern["detail"]["object"]["key"]]
    expressions = [re.compile(".*".join(map(re.escape, wildcard.split("*")))) for wildcard in wildcards]
    for actor in actors:
        for folder in (RunFolder(actor, 42), RunFolder(actor, 42, Place(42, 1))):
            assert any(each.fullmatch(f"{folder.attempts}a1/{COMMIT_FILE}") for each in expressions)
    assert not any(each.fullmatch("data/commit.json") for each in expressions)


def test_commits_of_other_actors_are_left_out_while_names_fit() -> None:
    (key,) = commit_pattern(BUCKET, ["crunch"])["detail"]["object"]["key"]
    assert key == {"wildcard": "runs/crunch/*/commit.json"}
