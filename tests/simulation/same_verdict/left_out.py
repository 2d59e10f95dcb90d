"""The tests of `tests/cloud` that the test kit cannot run, each with the reason. All others run on it as they are."""

from __future__ import annotations

_IAM = "IAM decides the verdict"
_PROCESSES = "starts and ends processes of the operating system"
_STAND_IN = "tests the stand-in of EMR Serverless, which the kit does not have"
_LOCAL_CLOUD = "tests the servers and files of the local cloud"
_META = "CloudWatch: the kit writes no metrics and no logs"
_HANDLER_WAITS = "its handler runs until the test acts; a handler of the kit runs in one step"
_JOB_WAITS = "its job runs until the test acts; a job of the kit runs in one step"
_HTTP = "an HTTP client or server of another process"
_COMMAND = "runs the command in a process of its own"
_AUTHORIZER = "API Gateway refuses the call before any function of the mesh"
_ROLE = "its handler calls AWS with the credentials of its role"

LEFT_OUT: dict[str, str | dict[str, str]] = {
    "test_table_kills": _STAND_IN,
    "test_attacks": _IAM,
    "test_callback": f"a browser follows a link: {_HTTP}",
    "test_cli": {
        "test_a_payload_from_standard_input_goes_to_its_actor": _COMMAND,
        "test_status_shows_a_failure_with_its_traceback": _COMMAND,
        "test_an_impossible_command_fails_with_one_line": _COMMAND,
        "test_send_waits_for_the_result_and_tells_a_failure_by_its_exit_code": _COMMAND,
        "test_logs_of_an_envelope_and_of_an_actor": _COMMAND,
        "test_a_report_sums_up_what_has_ended": _COMMAND,
        "test_smoke_sends_a_light_envelope_and_a_job_run": _COMMAND,
        "test_a_mesh_on_aws_is_found_by_its_stacks": "reads the stacks of CloudFormation",
    },
    "test_console": "a page in a browser; its server runs as a process",
    "test_crew_failures": f"each outage is a denied permission or a stopped function: {_IAM}",
    "test_deploy_under_load": "deploys a second version; tests/simulation/deploys has such schedules",
    "test_demo": {
        "test_protocol_15_one_trace_leads_through_light_heavy_fan_in_and_pause": "the kit exports no spans",
        "test_ctrl_c_leaves_no_process_behind": _PROCESSES,
    },
    "test_dev": "tests the processes and the reload of `asya dev`",
    "test_emr_drivers": _STAND_IN,
    "test_emr_s3_sync": _STAND_IN,
    "test_emr_stand_in": _STAND_IN,
    "test_fan_in": {"test_the_sweep_counts_the_open_sets": _META},
    "test_gateway": {
        "test_partials_are_stored_while_the_handler_runs": _HANDLER_WAITS,
        "test_a_canceled_task_stays_canceled": _HANDLER_WAITS,
        "test_children_are_canceled_with_their_root": _HANDLER_WAITS,
        "test_13_waits_a_caller_waits_in_three_calls_and_not_in_a_fourth": _HANDLER_WAITS,
    },
    "test_gateway_access": {
        "test_unsigned_calls_are_refused_except_public_ones": _AUTHORIZER,
        "test_a_call_that_only_names_a_key_is_unsigned": _AUTHORIZER,
        "test_an_actors_role_may_call_nothing": _ROLE,
        "test_an_actors_role_reads_the_state_of_a_record_and_nothing_else": _ROLE,
        "test_an_actors_role_reaches_no_objects_of_other_actors": _ROLE,
    },
    "test_gateway_paths": _IAM,
    "test_gateway_senders": {
        "test_an_actors_role_reports_about_its_own_actor_and_tasks_that_it_holds": _IAM,
        "test_the_crew_leads_an_actor_only_where_it_may_send": _IAM,
    },
    "test_tenants": f"{_IAM}, and {_STAND_IN}",
    "test_own_capability": {"test_asya_dev_runs_it_and_follows_its_code": _PROCESSES},
    "test_gateway_stream": f"curl and a browser follow streams: {_HTTP}, or {_HANDLER_WAITS}; test_gateway_reports has a stream",
    "test_gateway_a2a": {
        "test_the_card_is_public": _AUTHORIZER,
        "test_a_stream_shows_the_events_and_a_task_is_canceled": _HANDLER_WAITS,
        "test_a_client_is_notified_of_each_change_at_its_own_address": _HTTP,
    },
    "test_gateway_client": {
        "test_an_event_loop_waits_for_several_tasks_at_once": "calls from several threads; a mesh of the kit lives in one",
    },
    "test_gateway_mcp": {
        "test_the_documented_client_runs_a_pipeline": _HTTP,
        "test_a_call_is_canceled_by_its_client": _HANDLER_WAITS,
        "test_a_long_task_is_awaited_and_canceled_by_tools": _HANDLER_WAITS,
    },
    "test_gateway_openapi": f"schemathesis makes the calls: {_HTTP}",
    "test_gateway_tokens": f"tokens (JWT): {_AUTHORIZER}",
    "test_gateway_webhooks": "the secrets of webhooks lie in Secrets Manager; tests of asya.testing call webhooks on the kit",
    "test_heavy_console": "a page in a browser; its server runs as a process",
    "test_heavy_crashes": {
        "test_10_the_operator_sees_ended_runs": f"{_STAND_IN}: its dashboard and its logs",
        "test_13_the_lines_of_an_envelope_are_also_those_of_its_driver_and_executors": _META,
        "test_10_a_run_reports_progress_and_is_canceled_with_its_last_task": _JOB_WAITS,
        "test_10_the_operator_drains_an_actor_and_cancels_a_run": _JOB_WAITS,
    },
    "test_heavy_files": _IAM,
    "test_heavy_one_answer": "tests/spark/test_one_answer.py compares the kit with the same answer",
    "test_heavy_packages": "the kit runs all code in one environment, whatever its requirements say",
    "test_heavy_resident": "a resident run of the kit does not linger",
    "test_heavy_scale": {
        "test_each_envelope_ends_once_despite_faults": f"{_STAND_IN}: its faults; tests/simulation/heavy has more of them",
        "test_each_envelope_ends_once_despite_killed_processes": _PROCESSES,
    },
    "test_heavy_sizes": "its jobs end their process, which is that of the tests in the kit",
    "test_heavy_secrets": "compares the environments of the driver and of executors, which are one in the kit",
    "test_iam_matrix": _IAM,
    "test_local_access": _LOCAL_CLOUD,
    "test_local_cloud": _LOCAL_CLOUD,
    "test_night_call": "runs `asya dev`, and repairs its code",
    "test_night_call_of_four_breaks": f"one of its breaks is a denied permission: {_IAM}",
    "test_paths": {"test_1_a_handler_lists_what_its_access_covers": _IAM},
    "test_planted_failures": f"a queue is not read, and another one refuses messages: {_IAM}",
    "test_readme": _COMMAND,
    "test_trigger_lanes": "its events come by rules of EventBridge, which the kit does not have; "
    "tests/simulation/test_trigger_lanes.py has them",
    "test_trigger_sources": "the kit has neither notifications of buckets nor rules of EventBridge; "
    "tests/simulation/test_trigger_events.py has their messages",
    "test_tutorial": _COMMAND,
    "test_secrets": {
        "test_another_actor_may_not_read_them": _IAM,
        "test_6_the_values_are_nowhere_but_in_their_file": "reads the logs and files of the local cloud",
    },
    "test_redrive": {
        "test_an_operator_sees_a_dead_letter_which_stays_in_its_queue": "the kit answers no calls for operators",
    },
    "test_slow_paths": {
        "test_the_message_of_a_lost_process_is_delivered_again[deaf]": "its handler ignores interrupts, and ends with its process",
    },
}

SLOW_ON_THE_KIT = ("test_demo", "test_heavy_crashes", "test_heavy_scale")
"""Files whose tests take minutes on the kit, too: it runs them in full size."""

_PROCESS = "the handler has a process of its own, which the time limit interrupts or which ends"
_OBJECTS = "IAM decides who writes and reads its objects"
_FUNCTIONS = "the deployment decides the settings and the permissions of the functions that it runs"
_CLIENT = "the answers come by HTTP"

ON_BOTH: dict[str, dict[str, str]] = {
    "test_cli": {"test_a_payload_larger_than_a_message_arrives": _OBJECTS},
    "test_fan_in": {"test_a_set_of_heavy_slices_merges": f"{_FUNCTIONS}: those of a fan-in actor"},
    "test_gateway": {"test_the_sweep_stores_the_end_of_an_overdue_task": f"{_FUNCTIONS}: x-task-sweep"},
    "test_gateway_access": {"test_a_forged_callback_gets_no_request_and_no_credential": _HTTP},
    "test_gateway_client": {
        "test_a_payload_of_any_size_goes_out_and_comes_back": _OBJECTS,
        "test_partials_come_with_the_stream": _CLIENT,
    },
    "test_legacy_forms": {
        "test_14_a_legacy_end_handler_runs_unchanged": "the deployment writes the variables of its handler"
    },
    "test_paths": {
        "test_a_payload_larger_than_a_message_travels_by_claim_check": _OBJECTS,
        "test_the_time_limit_ends_every_kind_of_hanging_handler": _PROCESS,
        "test_system_exit_is_a_crash": _PROCESS,
        "test_an_interrupted_process_serves_the_next_message": _PROCESS,
        "test_a_hook_runs_once_for_each_end_and_reports_nothing": f"{_FUNCTIONS}: those of the ends",
    },
    "test_pause": {
        "test_a_task_pauses_with_a_notification_and_resumes_with_valid_answers": f"{_FUNCTIONS}: a pause and x-resume"
    },
    "test_redrive": {
        "test_a_dead_letter_is_reported_kept_and_redriven_after_the_fix": f"{_FUNCTIONS}: x-dlq; SQS counts the receives"
    },
    "test_results_index": {"test_the_index_job_compacts_a_day_into_one_file": f"{_FUNCTIONS}: the job role"},
    "test_secrets": {"test_6_the_actor_has_its_secrets": "the deployment gives a function its secrets"},
    "test_set_replay": {"test_only_the_lost_slice_of_a_failed_set_runs_again": f"{_FUNCTIONS}: slices by the outbox"},
    "test_slow_paths": {
        "test_the_deadline_ends_a_handler_before_its_time_limit": _PROCESS,
        "test_the_message_of_a_lost_process_is_delivered_again": _PROCESS,
    },
    "test_wait": {"test_an_envelope_waits_until_the_sweep_sends_it": f"{_FUNCTIONS}: a wait and x-pause-sweep"},
}
"""The tests that `make test` runs on the kit and on the local cloud, each with the reason."""


def is_left_to_the_kit(file: str, *names: str) -> bool:
    """Returns whether `make test` runs a test of `tests/cloud` on the kit alone; `make test-full` runs it on the cloud too.

    Args:
        file: the file without its suffix.
        names: the function, and the function with its parameters.
    """
    reasons = LEFT_OUT.get(file, {})
    if isinstance(reasons, str) or file in SLOW_ON_THE_KIT:
        return False
    return not {*names} & (reasons.keys() | ON_BOTH.get(file, {}).keys())
