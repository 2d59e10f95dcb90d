"""The clock in the templates: one function for the steps of the mesh (protocol §13, clock)."""

from typing import Any

import pytest

from asya.capabilities.clock.steps import STEPS, read_steps


@pytest.mark.rule("11.dlq.soon", "11.clock")
def test_a_schedule_invokes_it_every_minute(shop: Any, plain: Any) -> None:
    for mesh, namespace in ((shop, "shop"), (plain, "plain-test")):
        rule = mesh.one("AWS::Events::Rule", Name=f"asya-{namespace}-clock")
        assert rule["ScheduleExpression"] == "rate(1 minute)"
        assert [target["Arn"].startswith("<Clock") for target in rule["Targets"]] == [True]
        (allowed,) = [each for each in mesh.resources("AWS::Lambda::Permission") if "ClockSweep" in str(each)]
        assert allowed["Principal"] == "events.amazonaws.com"


@pytest.mark.rule("1.crew.sweeps", "11.clock")
def test_a_mesh_has_the_steps_that_it_needs_in_the_declared_order(shop: Any, plain: Any, private_local: Any) -> None:
    """One has all, one has no fan-in, and one neither pauses nor waits."""
    always = {"x-task-sweep": 1, "x-dlq": 1}
    for mesh, namespace, expected in (
        (shop, "shop", {"x-task-sweep": 1, "x-pause-sweep": 1, "x-fan-in-sweep": 5, "x-dlq": 1}),
        (plain, "plain-test", {"x-task-sweep": 1, "x-pause-sweep": 1, "x-dlq": 1}),
        (private_local, "light", always),
    ):
        function = mesh.function("x-clock", namespace)
        steps = read_steps(function["Environment"]["Variables"][STEPS])
        assert {step.name: step.minutes for step in steps} == expected
        assert [step.name for step in steps] == list(expected)
        assert sum(step.seconds for step in steps) < function["Timeout"]


@pytest.mark.rule("11.clock.rights")
def test_nothing_else_calls_it(shop: Any) -> None:
    """It takes messages of no queue, so nobody can say anything to it."""
    feeds = shop.resources("AWS::Lambda::EventSourceMapping")
    assert not any("Clock" in str(each["FunctionName"]) or "dlq" in each["EventSourceArn"] for each in feeds)


@pytest.mark.rule("11.clock.rights")
def test_what_reads_the_bytes_of_job_runs_stays_apart(shop: Any) -> None:
    assert shop.one("AWS::Events::Rule", Name="asya-shop-reconcile")["ScheduleExpression"] == "rate(5 minutes)"
    role = shop.one("AWS::IAM::Role", RoleName="asya-shop-x-clock-<Region>")
    assert "/runs/" not in str(role)
    assert "emr-serverless" not in str(role)
