"""The test kit gives the verdicts of the deployed mesh: tests of `tests/cloud` run on it as they are.

Left out is what asks how long something took by the clock of the machine, which stands still for the kit's time.
"""

import pytest

from asya.testing import Mesh
from tests.cloud import test_paths as on_the_cloud
from tests.cloud.test_paths import (  # noqa: F401 - pytest runs them here, with the fixture below
    test_a_completed_hop_does_not_run_again,
    test_a_handler_in_envelope_mode_advances_the_route,
    test_a_handler_sets_the_rest_of_the_route,
    test_a_hook_runs_once_for_each_end_and_reports_nothing,
    test_a_loop_ends_when_its_handler_stops_extending_the_route,
    test_a_payload_larger_than_a_message_travels_by_claim_check,
    test_a_retried_envelope_that_succeeds_has_no_error,
    test_a_retry_after_the_deadline_is_not_sent,
    test_a_route_of_25_hops_runs_25_handlers,
    test_a_route_override_replaces_the_actor_and_keeps_its_name_in_the_route,
    test_a_sequence_carries_its_payload_headers_and_trace,
    test_a_stealth_envelope_reports_nothing,
    test_an_endless_loop_ends_at_the_hop_limit,
    test_an_envelope_after_its_deadline_is_not_started,
    test_an_exhausted_envelope_takes_the_fallback_route_with_its_error,
    test_an_interrupted_process_serves_the_next_message,
    test_an_invalid_route_ends_in_x_sump,
    test_buffered_frames_come_from_one_call,
    test_each_leaf_of_a_fan_out_of_fan_outs_ends_by_itself,
    test_retries_end_at_the_maximum_duration,
    test_system_exit_is_a_crash,
    test_the_default_policy_applies_to_errors_without_a_rule,
    test_the_time_limit_ends_every_kind_of_hanging_handler,
)
from tests.doubles.kit_cloud import KitCloud
from tests.paths import PROJECT

BY_THE_CLOCK = {
    "test_a_retry_waits_as_its_policy_says",
    "test_a_retry_is_not_run_before_its_time",
    "test_a_retry_in_an_hour_waits_on_the_queue",
}


@pytest.fixture(scope="module")
def envelopes() -> on_the_cloud.SentEnvelopes:
    """The envelopes of the tests on the cloud, sent to the same mesh file."""
    cloud = KitCloud(Mesh(PROJECT / "tests" / "cloud" / "meshes" / "paths" / "mesh.yaml"))
    by_name = on_the_cloud.all_envelopes()
    # The deadlines of the others are not an hour away.
    for name in sorted(by_name, key=lambda each: each == "retry in an hour"):
        on_the_cloud.send(cloud, by_name[name])  # type: ignore[arg-type]
    return on_the_cloud.SentEnvelopes(cloud, by_name)  # type: ignore[arg-type]


def test_no_test_of_routes_is_forgotten() -> None:
    on_cloud = {name for name in vars(on_the_cloud) if name.startswith("test_")}
    assert on_cloud - set(globals()) == BY_THE_CLOCK


def test_retries_wait_in_virtual_time_as_their_policies_say() -> None:
    kit = Mesh(PROJECT / "tests" / "cloud" / "meshes" / "paths" / "mesh.yaml")
    for how, delays in on_the_cloud.BACKOFFS.items():
        before = kit.now
        assert kit.send("stubborn", {"fails": how}).status == "failed"
        assert sum(delays) <= (kit.now - before).total_seconds() <= sum(delays) + 3
