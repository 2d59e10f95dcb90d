"""The page of who is trusted with what: each promise has tests, what it names exists, and each call that is open is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from asya.gateway.call_table import CALLS
from asya.protocol import names
from tests.paths import PROJECT

PAGE = (PROJECT / "docs" / "security.md").read_text()
PROTOCOL = (PROJECT / "docs" / "protocol.md").read_text()
HEADS = re.findall(r"^\| ([^|]+) \|.*\n\|---", PAGE, re.MULTILINE)
"""The first column of each table."""
KEYS = re.findall(r"^\| `([a-z]+\.[a-z-]+)` \|", PAGE.partition("| program | in |")[0], re.MULTILINE)
"""The keys of the promises, in the order of the page."""
OPEN = sorted({f"{call.method} {call.path}" for call in CALLS if call.is_public})

TESTS: dict[str, dict[str, tuple[str, ...]]] = {
    "stranger.calls": {
        "infra/test_state_and_gateway.py": ("test_every_route_needs_a_signature_but_the_public_ones",),
        "infra/test_token_api.py": ("test_every_route_needs_a_token_but_the_public_ones",),
        "cloud/test_gateway_access.py": ("test_unsigned_calls_are_refused_except_public_ones",),
        "cloud/test_gateway_tokens.py": ("test_only_a_valid_token_is_accepted",),
    },
    "stranger.stream": {
        "unit/asya/gateway/streams/test_routes.py": (
            "test_a_token_opens_nothing_else_and_expires",
            "test_forged_tokens_cause_no_reads",
        ),
        "unit/asya/gateway/streams/test_server.py": ("test_a_stream_ends_with_its_token",),
    },
    "stranger.link": {
        "unit/asya/gateway/callbacks/test_routes.py": ("test_every_other_token_gives_the_same_404",),
        "unit/asya/capabilities/pauses/test_callback_tokens.py": ("test_each_changed_character_breaks_it",),
    },
    "stranger.link-rate": {
        "infra/test_pauses.py": ("test_only_a_mesh_with_links_has_the_open_calls",),
    },
    "stranger.hook": {
        "unit/asya/gateway/routes/test_webhooks.py": (
            "test_16_another_signature_is_refused",
            "test_16_who_signs_nothing_learns_nothing_of_the_body",
        ),
        "cloud/test_gateway_webhooks.py": ("test_16_everything_else_is_refused",),
    },
    "stranger.hook-rate": {
        "infra/test_webhooks.py": ("test_16_webhooks_are_throttled",),
    },
    "caller.others": {
        "unit/asya/gateway/lambdas/test_api.py": ("test_a_task_of_another_owner_is_not_found",),
        "cloud/test_gateway_access.py": ("test_the_task_of_another_owner_is_not_found",),
    },
    "caller.starts": {
        "unit/asya/gateway/test_start_rights.py": ("test_the_gateway_starts_nothing_that_the_caller_may_not_start",),
    },
    "caller.headers": {
        "unit/asya/tasks/starts/test_submission.py": ("test_managed_headers_are_stripped_but_for_two",),
    },
    "caller.overrides": {
        "unit/asya/gateway/test_start_rights.py": ("test_headers_that_only_operators_may_set",),
    },
    "caller.reports": {
        "unit/asya/gateway/routes/test_reports.py": ("test_other_callers_cannot_report",),
        "unit/asya/gateway/test_access_identity_jwt_claims.py": ("test_a_token_reports_nothing",),
    },
    "caller.paths": {
        "unit/asya/gateway/test_doors.py": ("test_a_hostile_path_reaches_no_other_call_than_iam_has_judged",),
        "cloud/test_gateway_paths.py": ("test_a_caller_makes_the_calls_that_its_policy_allows_by_path",),
    },
    "caller.tenant": {
        "unit/asya/tasks/starts/test_submission.py": ("test_3_a_caller_names_no_tenant_but_itself",),
        "unit/asya/heavy/lambdas/test_dispatch_fair.py": (
            "test_10_with_owner_nobody_fills_the_round_of_another_tenant",
        ),
    },
    "caller.waits": {
        "unit/asya/gateway/aws/test_long_poll_permits.py": (
            "test_13_waits_a_caller_gets_so_many_permits_and_others_get_theirs",
        ),
    },
    "answer.once": {
        "unit/asya/gateway/callbacks/test_routes.py": (
            "test_a_form_resumes_once",
            "test_a_link_answers_its_own_pause_alone",
            "test_a_link_answers_no_pause_that_came_meanwhile",
        ),
    },
    "answer.question": {
        "unit/asya/testing/test_mesh_attacks_of_code_waits.py": (
            "test_an_answer_names_the_question_that_was_read_and_counts_for_no_other_one",
        ),
        "unit/asya_cli/tasks/test_records_ids.py": ("test_the_line_to_type_names_the_same_id_and_the_question",),
    },
    "answer.fields": {
        "unit/asya/capabilities/pauses/test_resume_input.py": (
            "test_what_is_not_asked_for_is_refused",
            "test_and_no_others",
        ),
    },
    "answer.payload": {
        "unit/asya/gateway/callbacks/test_routes.py": ("test_a_page_shows_what_the_actor_names",),
        "unit/asya/capabilities/pauses/test_shown.py": ("test_entries_texts_and_levels_are_bounded",),
        "unit/asya/gateway/callbacks/test_page.py": ("test_the_page_shows_the_question_and_nothing_else",),
    },
    "answer.lists": {
        "unit/asya/capabilities/pauses/test_shown_to.py": (
            "test_lists_have_the_question_alone",
            "test_the_values_are_there_until_the_pause_ends",
        ),
        "unit/asya/gateway/callbacks/test_routes.py": ("test_lists_and_streams_leave_the_link_out",),
    },
    "answer.models": {
        "unit/asya/capabilities/pauses/test_shown_to_models.py": (
            "test_11_a_tool_answers_without_the_link",
            "test_11_an_agent_gets_no_link",
            "test_11_a_notification_has_no_link",
        ),
    },
    "answer.notification": {
        "unit/asya/capabilities/pauses/lambdas/test_pause_shown.py": (
            "test_an_event_has_no_payload_that_the_actor_does_not_name",
        ),
    },
    "answer.bus": {
        "unit/asya/capabilities/pauses/lambdas/test_pause_links.py": ("test_11_the_default_bus_has_no_link",),
    },
    "answer.page": {
        "unit/asya/gateway/callbacks/test_page.py": (
            "test_nothing_of_a_question_becomes_an_element",
            "test_the_policy_allows_the_only_style_and_nothing_else",
        ),
        "unit/asya/capabilities/pauses/test_shown.py": ("test_only_addresses_of_data_are_links",),
    },
    "operator.roles": {
        "unit/asya/gateway/test_access.py": ("test_no_role_of_the_mesh_is_an_operator",),
        "infra/test_roles.py": ("test_the_gateway_knows_every_role_of_a_mesh",),
        "cloud/test_gateway_access.py": ("test_an_actors_role_may_call_nothing",),
    },
    "operator.redrive": {
        "unit/asya/gateway/routes/test_redrives.py": ("test_only_operators_redrive_not_even_the_owner",),
    },
    "sender.state": {
        "unit/asya/senders/test_entry.py": ("test_an_envelope_enters_without_what_only_the_mesh_writes",),
        "unit/asya/senders/lambdas/test_admission.py": ("test_a_forged_envelope_starts_a_task_of_its_sender",),
    },
    "sender.id": {
        "unit/asya/senders/lambdas/test_admission.py": (
            "test_the_id_of_another_sender_is_refused_and_the_message_is_kept",
        ),
        "unit/asya/senders/test_entry.py": ("test_an_id_is_kept_while_anything_lives_that_it_names",),
        "cloud/test_gateway_senders.py": ("test_an_id_belongs_to_the_first_sender",),
    },
    "sender.reserved": {
        "unit/asya/senders/test_entry.py": ("test_nobody_enters_with_an_id_that_the_mesh_gives_out",),
    },
    "sender.payload": {
        "unit/asya/senders/test_entry.py": ("test_a_payload_is_read_from_the_inbox_alone",),
        "infra/test_customer_key.py": ("test_4_the_bucket_takes_objects_under_its_own_key_alone",),
    },
    "sender.says": {
        "unit/asya/testing/test_mesh_statements.py": ("test_a_statement_counts_from_those_who_may_say_it",),
        "simulation/test_strangers.py": ("test_a_stranger_changes_nothing_of_others",),
        "cloud/test_gateway_senders.py": ("test_a_raw_message_changes_no_task_of_others",),
    },
    "sender.end": {
        "unit/asya/ends/lambdas/test_sink_claims.py": ("test_an_end_of_another_owner_leaves_the_result",),
        "unit/asya/tasks/aws/test_tasks_owners.py": ("test_reports_of_another_owner_change_neither_record_nor_hops",),
    },
    "sender.route": {
        "unit/asya/testing/test_mesh_attacks_from_outside_routes.py": (
            "test_a_replay_starts_nothing_where_its_caller_may_not",
        ),
        "unit/asya/testing/test_mesh_authority.py": ("test_a_sender_outside_does_not_start_behind_the_crew",),
        "unit/asya/sidecar/test_outcome.py": ("test_5_12_a_next_actor_that_this_one_may_not_send_to_fails_the_hop",),
    },
    "sender.block": {
        "unit/asya/ends/lambdas/test_sump.py": ("test_what_cannot_be_parsed_is_logged_kept_as_it_is_and_acked",),
        "unit/asya/senders/lambdas/test_admission.py": ("test_the_messages_of_a_batch_are_judged_each_for_itself",),
        "unit/asya/testing/test_mesh_attacks_from_outside_forms.py": ("test_a_message_changes_nothing_of_others",),
    },
    "sender.operators": {
        "unit/asya/protocol/test_ids.py": ("test_the_key_of_an_item_that_is_no_claim_is_no_id",),
        "unit/asya/testing/test_mesh_ids.py": ("test_an_id_of_any_characters_is_reached_by_every_call",),
        "unit/asya_cli/tasks/test_records_ids.py": ("test_a_command_calls_about_the_id_that_was_typed",),
        "unit/asya/senders/test_entry.py": (
            "test_a_deadline_from_outside_keeps_nothing_for_longer_than_one_of_the_gateway",
        ),
        "unit/asya/gateway/lambdas/test_task_sweeps_deadline_sweep.py": (
            "test_ended_tasks_of_one_minute_do_not_hold_up_the_sweep_for_ever",
        ),
        "unit/asya/tasks/test_failures.py": ("test_no_text_of_a_caller_takes_long_to_group",),
        "unit/asya/tasks/test_sweeps_silence.py": (
            "test_the_advice_about_a_lost_task_quotes_an_id_that_somebody_outside_has_chosen",
        ),
    },
    "webhook.route": {
        "unit/asya/testing/test_external_webhook_calls.py": (
            "test_16_a_body_in_the_form_of_an_envelope_chooses_nothing",
        ),
        "cloud/test_gateway_webhooks.py": ("test_16_a_trigger_starts_its_own_route_and_nothing_else",),
    },
    "webhook.once": {
        "unit/asya/testing/test_external_webhook_calls.py": ("test_16_a_repetition_is_known_as_long_as_its_task_is",),
    },
    "webhook.caught": {
        "unit/asya/capabilities/triggers/test_webhooks_signatures.py": ("test_16_a_changed_body_is_not_signed",),
        "unit/asya/gateway/routes/test_webhooks.py": (
            "test_16_a_caught_webhook_starts_no_other_trigger",
            "test_16_a_caught_webhook_starts_nothing_under_another_content_type",
        ),
        "unit/asya/testing/test_external_webhook_calls.py": ("test_16_a_repetition_starts_nothing",),
    },
    "webhook.age": {
        "unit/asya/gateway/routes/test_webhooks.py": ("test_16_an_old_webhook_is_refused_where_its_time_is_signed",),
    },
    "webhook.role": {
        "infra/test_webhooks.py": ("test_16_the_function_reads_keys_and_which_tasks_exist_and_sends_and_nothing_else",),
    },
    "source.payload": {
        "unit/asya/capabilities/triggers/test_occurrences_templates.py": ("test_a_value_is_not_a_template",),
    },
    "source.route": {
        "infra/test_trigger_sources.py": ("test_16_each_trigger_on_a_bus_has_a_rule_that_names_it",),
        "unit/asya/capabilities/triggers/lambdas/test_triggers_sources.py": (
            "test_16_no_function_of_the_mesh_speaks_for_s3_or_a_rule",
        ),
    },
    "source.queue": {
        "infra/test_trigger_sources.py": ("test_16_only_the_mesh_and_its_sources_send_to_the_queue",),
    },
    "actor.holds": {
        "unit/asya/testing/test_mesh_task_keys.py": (
            "test_a_forged_message_changes_nothing_of_a_task",
            "test_each_queue_where_a_key_counts_is_attacked",
            "test_a_report_of_a_task_that_its_sender_does_not_hold_is_refused",
        ),
    },
    "actor.sets": {
        "unit/asya/testing/test_mesh_task_keys.py": ("test_an_envelope_belongs_to_no_set_of_another_task",),
        "unit/asya/senders/test_task_keys.py": ("test_a_slice_takes_the_place_of_no_other",),
    },
    "actor.says": {
        "unit/asya/testing/test_mesh_statements.py": ("test_a_statement_counts_from_those_who_may_say_it",),
        "unit/asya/testing/test_mesh_authority.py": ("test_code_of_an_actor_resumes_no_pause",),
        "unit/asya/testing/test_mesh_attacks_of_code_ends.py": ("test_an_end_is_that_of_the_actor_that_says_it",),
        "unit/asya/testing/test_mesh_forged_letters.py": (
            "test_a_forged_letter_ends_and_replays_its_task_where_it_was",
            "test_a_forged_end_is_replayed_nowhere_else",
        ),
        "infra/test_permissions.py": ("test_only_the_crew_reports_ends",),
        "unit/asya/gateway/lambdas/test_report_queues.py": (
            "test_an_end_on_the_queue_of_all_actors_is_refused_alone",
            "test_an_actor_reports_about_itself_alone",
        ),
        "unit/asya/senders/test_authority.py": ("test_x_wait_takes_from_an_actor_its_own_retries_only",),
        "infra/test_trigger_sources.py": ("test_16_only_the_mesh_and_its_sources_send_to_the_queue",),
        "unit/asya/capabilities/triggers/test_messages_message_senders.py": (
            "test_16_a_function_sends_its_own_messages_alone",
        ),
    },
    "actor.lead": {
        "unit/asya/testing/test_mesh_authority.py": (
            "test_a_route_through_the_crew_leads_nowhere_that_its_actor_may_not_send_to",
            "test_a_redriven_letter_goes_no_further_than_its_first_sender_may_send",
        ),
        "unit/asya/testing/test_mesh_forged_letters.py": ("test_a_forged_letter_is_redriven_nowhere_else",),
        "unit/asya/senders/test_authority.py": ("test_an_actor_runs_only_if_a_chain_of_edges_leads_to_it",),
    },
    "actor.marks": {
        "unit/asya/testing/test_mesh_task_keys.py": ("test_a_forged_envelope_at_a_target_leaves_the_true_one_alone",),
    },
    "actor.calls": {
        "unit/asya_infra/permissions/test_needs_matrix.py": (
            "test_what_is_declared_is_allowed_and_all_else_is_refused",
        ),
        "infra/test_iam_matrix.py": ("test_a_role_of_each_kind_allows_what_its_manifest_declares",),
        "cloud/test_gateway_access.py": ("test_an_actors_role_may_call_nothing",),
    },
    "actor.states": {
        "infra/test_permissions.py": ("test_functions_read_the_states_of_tasks_only_and_call_no_gateway",),
        "cloud/test_gateway_access.py": ("test_an_actors_role_reads_the_state_of_a_record_and_nothing_else",),
    },
    "actor.reads": {
        "infra/test_object_permissions.py": ("test_an_actor_lists_and_reads_only_what_is_for_it",),
        "cloud/test_gateway_access.py": ("test_an_actors_role_reaches_no_objects_of_other_actors",),
    },
    "actor.writes": {
        "infra/test_object_permissions.py": (
            "test_payloads_are_stored_for_the_targets_of_an_actor",
            "test_inputs_of_hops_are_written_by_actors_that_keep_them_and_read_by_the_gateway",
        ),
        "unit/asya/testing/test_mesh_attacks_of_code_inputs.py": ("test_an_input_of_another_actor_is_not_written",),
    },
    "actor.replays": {
        "unit/asya/testing/test_mesh_attacks_of_code_inputs.py": (
            "test_an_input_of_a_task_that_its_actor_never_had_starts_nothing",
            "test_an_input_says_the_actor_and_the_hop_of_its_key",
        ),
    },
    "actor.items": {
        "unit/asya_infra/permissions/test_needs_matrix.py": ("test_code_of_users_writes_no_item_of_another_actor",),
        "cloud/test_local_access.py": ("test_a_role_for_some_keys_reaches_no_item_of_others_by_any_call",),
    },
    "actor.sink": {
        "infra/test_permissions.py": (
            "test_an_end_can_be_claimed_and_not_replaced_or_deleted",
            "test_who_judges_senders_reads_roles_and_claims_ids_only",
        ),
        "unit/asya_infra/permissions/test_needs_matrix.py": (
            "test_the_list_of_roles_is_written_by_the_deployment_alone",
            "test_code_of_users_reads_no_secret_but_that_of_its_actor",
        ),
    },
    "actor.blocks": {
        "unit/asya/testing/test_mesh_attacks_of_code_forms.py": ("test_an_attempt_changes_nothing_of_a_task",),
        "unit/asya/testing/test_mesh_attacks_of_code_ends.py": ("test_an_attempt_changes_nothing_of_a_task",),
        "unit/asya/senders/lambdas/test_admission.py": (
            "test_a_message_that_cannot_be_judged_for_itself_holds_up_no_other",
        ),
        "unit/asya/capabilities/dead_letters/lambdas/test_dlq.py": (
            "test_no_queue_with_many_letters_delays_those_of_another",
        ),
        "unit/asya/sidecar/aws/test_circuit_breaker.py": ("test_who_looks_at_all_actors_reads_a_circuit_of_any_form",),
    },
    "actor.sizes": {
        "unit/asya/function/aws/test_claim_check.py": (
            "test_a_function_that_reads_for_all_reads_no_payload_that_it_cannot_hold",
        ),
        "unit/asya/sidecar/aws/test_hop_records_frame_buffer.py": (
            "test_frames_that_code_of_another_actor_has_made_unreadable_count_as_none",
        ),
        "unit/asya/capabilities/fan_in/test_sets.py": ("test_a_set_that_its_function_cannot_hold_fails_its_origin",),
        "unit/asya/capabilities/fan_in/aws/test_slice_store.py": ("test_no_slice_of_a_set_that_is_too_large_is_read",),
        "unit/asya/protocol/test_slices.py": (
            "test_a_malformed_header_is_named",
            "test_a_header_in_too_many_sets_is_malformed",
        ),
        "unit/asya/ends/lambdas/test_ends_sets.py": (
            "test_an_end_sends_one_message_to_each_set_and_none_for_a_header_that_is_too_deep",
        ),
        "unit/asya/ends/test_stored_json.py": ("test_the_depth_of_a_payload_bounds_its_object",),
        "unit/asya/tasks/aws/test_lists_filters.py": ("test_a_page_has_so_many_bytes_or_one_item",),
        "unit/asya/tasks/aws/test_failure_groups.py": ("test_groups_are_those_of_the_listed_tasks",),
    },
    "actor.redrive": {
        "unit/asya/capabilities/dead_letters/test_redrive.py": (
            "test_an_older_letter_does_not_take_over_what_another_one_has_begun",
        ),
    },
    "actor.stored": {
        "unit/asya/testing/test_mesh_task_keys.py": ("test_nothing_that_is_stored_or_shown_has_a_key",),
    },
    "job.session": {
        "unit/asya/heavy/test_run_request.py": (
            "test_10_a_session_writes_its_attempts_and_logs_alone",
            "test_a_session_reaches_its_own_run_only",
        ),
        "unit/asya_infra/permissions/test_job_runs.py": ("test_10_the_policy_of_all_runs_opens_nothing_of_one_run",),
        "cloud/test_heavy_files.py": ("test_10_a_job_cannot_write_its_manifest",),
    },
    "job.reads": {
        "unit/asya/heavy/test_run_request.py": ("test_10_a_session_reads_the_stored_envelopes_of_its_run",),
    },
    "job.resident": {
        "unit/asya/heavy/test_run_request.py": ("test_10_a_run_that_lingers_says_nothing_of_another_one",),
        "unit/asya/heavy/lambdas/test_resident_runs.py": (
            "test_10_a_forged_batch_file_routes_nothing_of_others",
            "test_10_a_result_in_the_folder_of_another_run_routes_nothing",
        ),
        "unit/asya/heavy/aws/test_run_files.py": (
            "test_10_a_sign_of_life_is_of_now",
            "test_10_a_sign_of_life_of_another_form_is_none",
        ),
    },
    "job.calls": {
        "infra/test_permissions.py": ("test_a_job_role_sends_no_message_and_reaches_no_table",),
    },
    "job.manifest": {
        "unit/asya/heavy/lambdas/test_complete_manifests.py": (
            "test_10_a_changed_manifest_routes_nothing_until_it_is_mended",
        ),
        "unit/asya/heavy/test_run_formation_manifest_check.py": (
            "test_10_a_key_outside_of_the_pending_envelopes_of_the_actor_does_not",
        ),
    },
    "job.routes": {
        "unit/asya/heavy/lambdas/test_result_routing.py": ("test_a_result_goes_only_where_its_own_actor_may_send",),
    },
    "job.headers": {
        "unit/asya/heavy/lambdas/test_result_routing.py": (
            "test_a_job_sets_its_own_headers_and_none_of_the_mesh",
            "test_a_result_belongs_to_no_set_of_another_task",
        ),
    },
    "job.blocks": {
        "unit/asya/heavy/aws/test_run_files.py": (
            "test_10_no_file_of_a_job_is_read_whole",
            "test_10_a_job_that_litters_its_folders_does_not_keep_the_crew_busy",
            "test_10_a_file_that_nobody_can_read_counts_as_missing",
            "test_10_a_presence_that_nobody_can_read_holds_up_no_other_actor",
        ),
    },
    "job.tables": {
        "unit/asya_spark/tables/test_records.py": (
            "test_10_a_hostile_commit_of_the_own_call_is_refused",
            "test_10_a_hostile_commit_of_another_call_is_refused",
            "test_10_a_hostile_number_is_refused",
            "test_10_a_hostile_record_of_a_version_to_remove_is_refused",
            "test_10_a_hostile_commit_of_an_append_is_refused",
            "test_10_a_hostile_description_is_refused_and_runs_nothing",
        ),
        "spark/test_append_once.py": (
            "test_10_a_commit_that_somebody_else_wrote_takes_no_file_of_others",
            "test_10_the_type_of_a_file_or_a_record_runs_no_code",
        ),
    },
    "job.catalog": {
        "infra/test_catalogs.py": ("test_no_job_creates_changes_or_drops_a_database",),
        "unit/asya_infra/permissions/test_access_glue.py": (
            "test_another_database_is_closed",
            "test_the_files_of_other_tables_are_closed",
        ),
    },
    "capability.needs": {
        "unit/asya_infra/mesh_file/test_capabilities.py": ("test_what_a_manifest_may_not_declare",),
    },
    "mesh.calls": {
        "infra/test_iam_matrix.py": ("test_a_function_may_do_nothing_in_another_stage",),
        "cloud/test_iam_matrix.py": ("test_a_function_may_do_nothing_in_another_stage",),
        "infra/test_permissions.py": ("test_no_role_sends_to_a_pattern_of_queues",),
    },
    "mesh.names": {
        "infra/test_side_by_side.py": (
            "test_meshes_and_stages_share_an_account",
            "test_a_queue_name_of_another_mesh_is_refused",
        ),
    },
    "mesh.says": {
        "unit/asya/testing/test_mesh_statements.py": ("test_a_statement_counts_from_those_who_may_say_it",),
        "unit/asya/testing/test_mesh_task_keys.py": ("test_a_forged_message_changes_nothing_of_a_task",),
        "unit/asya/capabilities/pauses/test_callback_tokens.py": ("test_another_key_has_other_tokens",),
        "unit/asya/gateway/streams/test_routes.py": ("test_another_key_gives_other_tokens",),
    },
    "mesh.runs": {
        "infra/test_spark.py": (
            "test_other_events_do_not_reach_it",
            "test_only_this_rule_may_send_to_the_completion_queue",
        ),
        "unit/asya/heavy/lambdas/test_complete.py": ("test_the_end_of_another_job_run_does_not_end_this_one",),
    },
    "mesh.reports": {
        "unit/asya_infra/permissions/test_needs_resources.py": (
            "test_x_reports_calls_the_named_gateways_for_reports_only",
            "test_without_foreign_gateways_it_calls_none",
        ),
    },
    "mesh.reporting": {
        "unit/asya/gateway/routes/test_reports.py": (
            "test_another_mesh_reports_if_its_role_is_named_as_an_operator",
            "test_other_callers_cannot_report",
        ),
    },
    "mesh.notifications": {
        "unit/asya/capabilities/a2a/lambdas/test_push.py": ("test_the_gateway_of_another_mesh_gets_no_notification",),
    },
    "receiver.address": {
        "unit/asya/capabilities/a2a/aws/test_push_sender_addresses.py": (
            "test_a_name_with_a_private_address_gets_no_request",
            "test_other_responses_fail_and_redirects_are_not_followed",
            "test_the_certificate_must_be_for_the_host_of_the_url",
        ),
        "unit/asya/capabilities/a2a/test_push_changes.py": ("test_which_addresses_are_public",),
    },
    "receiver.content": {
        "unit/asya/capabilities/a2a/aws/test_push_sender_addresses.py": (
            "test_a_notification_carries_the_clients_token_and_nothing_of_the_mesh",
        ),
        "infra/test_push_notifications.py": ("test_the_function_that_calls_third_parties_has_few_permissions",),
    },
    "receiver.time": {
        "unit/asya/capabilities/a2a/aws/test_push_sender.py": (
            "test_no_receiver_holds_the_sender_beyond_the_limit",
            "test_a_name_server_that_does_not_answer_does_not_hold_the_sender",
        ),
    },
    "receiver.shares": {
        "unit/asya/capabilities/a2a/aws/test_push_items_push_share_items.py": (
            "test_13_a2a_push_shares_a_slow_host_gets_two_minutes_of_each",
            "test_13_a2a_push_shares_an_owner_with_many_slow_hosts_gets_four_minutes",
            "test_13_a2a_push_shares_no_owner_holds_up_another_at_the_same_host",
        ),
    },
    "package.builds": {
        "infra/test_build.py": ("test_a_package_without_a_wheel_is_named",),
        "unit/repository/test_installations.py": ("test_every_installation_is_in_the_list_and_pinned",),
    },
    "package.hashes": {
        "infra/test_build.py": ("test_required_hashes_refuse_all_other_packages",),
    },
    "package.product": {
        "unit/repository/test_installations.py": (
            "test_every_pinned_package_is_a_wheel_or_built_by_what_is_pinned",
            "test_every_package_of_npm_has_its_hash",
        ),
    },
    "package.workflow": {
        "unit/repository/test_installations.py": (
            "test_the_workflow_of_a_project_installs_hashes_only",
            "test_actions_are_pinned_by_commit",
        ),
    },
    "local.host": {
        "unit/asya_local/authentication/test_admission.py": ("test_another_host_is_refused_before_anything_else",),
        "cloud/test_local_access.py": ("test_web_pages_and_other_hosts_are_refused",),
    },
    "local.origin": {
        "unit/asya_local/authentication/test_admission.py": ("test_a_web_page_is_refused_except_at_an_api",),
        "cloud/test_local_access.py": ("test_a_page_in_a_browser_reaches_nothing",),
    },
    "local.services": {
        "unit/asya_local/authentication/test_admission.py": ("test_others_are_refused",),
        "unit/asya_local/authentication/test_signatures.py": ("test_a_changed_request_is_refused",),
        "cloud/test_local_access.py": ("test_root_needs_a_signature",),
    },
    "local.gateway": {
        "unit/asya_local/authentication/test_admission.py": (
            "test_services_take_signed_requests_and_apis_decide_for_themselves",
        ),
        "unit/asya_local/ministack/test_server.py": ("test_the_host_of_an_api_has_the_paths_of_the_api_alone",),
    },
    "local.internal": {
        "unit/asya_local/authentication/test_admission.py": (
            "test_internal_paths_need_the_secret",
            "test_no_detour_leads_to_an_internal_path",
            "test_an_answer_has_a_token_and_nothing_else",
            "test_a_token_opens_one_page",
        ),
    },
    "local.body": {
        "unit/asya_local/authentication/test_admission.py": (
            "test_a_body_of_nobody_known_has_a_limit",
            "test_headers_prove_what_they_can_before_the_body_is_read",
        ),
        "unit/asya_local/ministack/test_server.py": ("test_a_stranger_fills_no_memory",),
    },
    "local.files": {
        "cloud/test_local_access.py": (
            "test_another_user_of_the_machine",
            "test_the_files_of_a_cloud_are_its_owners",
            "test_functions_have_random_credentials",
        ),
    },
    "local.dev": {
        "cloud/test_dev.py": ("test_only_the_operator_calls_the_gateway",),
    },
    "local.worker": {
        "cloud/test_dev.py": ("test_the_mesh_listens_for_its_user_alone",),
    },
    "local.spark": {
        "spark/test_driver_doors.py": (
            "test_a_stranger_reads_no_cached_block_of_the_kit",
            "test_the_kit_listens_on_loopback_alone_and_keeps_its_files_to_itself",
            "test_a_stranger_reads_no_cached_block_of_asya_run",
        ),
        "cloud/test_emr_drivers.py": (
            "test_a_stranger_reads_no_cached_block_of_a_run_even_if_its_submit_parameters_open_them",
        ),
    },
    "local.console": {
        "unit/asya_cli/console/test_guard.py": (
            "test_another_host_is_refused",
            "test_a_call_of_another_page_is_refused",
            "test_a_call_without_the_secret_is_refused",
        ),
        "unit/asya_cli/console/test_page_opening.py": ("test_only_this_user_can_read_the_file_and_list_its_folder",),
    },
    "local.temporary": {
        "unit/repository/test_installations.py": ("test_npm_loads_no_compiled_code_that_another_user_may_have_made",),
    },
    "local.links": {
        "unit/asya_cli/test_data.py": ("test_a_planted_link_leads_nowhere",),
        "unit/asya_cli/output/test_files.py": ("test_a_link_with_its_name_is_replaced_and_not_followed",),
    },
}
"""By promise, the tests that show it, by file below tests/."""


@pytest.mark.parametrize("call", OPEN)
def test_each_open_call_is_on_the_page(call: str) -> None:
    assert f"`{call}`" in PAGE


@pytest.mark.parametrize("rule", sorted(set(re.findall(r"§(\d+\.[\w.-]+\w)", PAGE))))
def test_each_rule_of_the_page_is_one_of_the_protocol(rule: str) -> None:
    assert f"**§{rule}**" in PROTOCOL


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(x-[a-z-]+)`", PAGE))))
def test_each_function_and_queue_of_the_page_exists(name: str) -> None:
    known = {value for value in vars(names).values() if isinstance(value, str)}
    assert name in known or name.startswith("x-asya-")


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:functions|infra|asya_cli)/[\w/.]+)`", PAGE))))
def test_each_file_of_the_page_exists(path: str) -> None:
    assert Path(PROJECT, path).exists()


def test_each_promise_has_tests() -> None:
    """A table without keys promises nothing; that of the programs is compared with the kernel (`tests/doubles/doors.py`)."""
    assert set(HEADS) == {"key", "program"}
    assert list(TESTS) == KEYS


@cache
def functions_of(file: str) -> frozenset[str]:
    nodes = ast.walk(ast.parse((PROJECT / "tests" / file).read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("promise", TESTS)
def test_each_test_of_a_promise_exists(promise: str) -> None:
    assert TESTS[promise]
    for file, tests in TESTS[promise].items():
        assert set(tests) <= functions_of(file)
        assert all(test.startswith("test_") for test in tests)
