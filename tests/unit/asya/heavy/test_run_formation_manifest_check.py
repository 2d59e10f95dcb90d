"""A manifest fits its run (`protocol §10`)."""

import pytest
from msgspec.structs import replace

from asya.heavy.run_formation import manifest_problem
from asya.protocol.job_runs import Member
from tests.doubles.job_runs import MANIFEST

MEMBER = Member(id="a", position=0, attempt=1, admitted_at="2026-01-01T00:00:00Z")


@pytest.mark.rule("10.manifest")
def test_10_a_manifest_of_its_run_with_pending_envelopes_of_its_actor_fits() -> None:
    members = (MEMBER, replace(MEMBER, envelope_key="pending/heavy/0c4e.json"))
    assert manifest_problem(replace(MANIFEST, members=members), "heavy", 42) is None


@pytest.mark.rule("10.manifest")
@pytest.mark.parametrize(
    "key",
    [
        "payloads/ab/abc.json",
        "pending/heavyweight/a.json",
        "pending/",
        "",
        "pending/heavy/../other/a.json",
        "/pending/heavy/a",
    ],
)
def test_10_a_key_outside_of_the_pending_envelopes_of_the_actor_does_not(key: str) -> None:
    problem = manifest_problem(replace(MANIFEST, members=(replace(MEMBER, envelope_key=key),)), "heavy", 42)
    assert problem == f"the envelope {key!r} of member 'a' is outside of pending/heavy/"


@pytest.mark.rule("10.manifest")
def test_10_the_manifest_of_another_run_does_not() -> None:
    assert manifest_problem(MANIFEST, "heavy", 41) == "it is that of run 42 of 'heavy'"
    assert manifest_problem(MANIFEST, "other", 42) == "it is that of run 42 of 'heavy'"
