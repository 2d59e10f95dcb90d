"""The names that others rely on: metrics, components of the OpenAPI document, commands and their options."""

SCHEMAS = """
Access ActorDetails ActorNumbers BackfillList BackfillRequest BackfillView CallWork CallbackAnswer Cancellation CircuitBreaker
DecidedSlot DecidedSlots DismissRequest Dismissed Durations EarlierGeneration Edge Ended EnvelopeLine Error ErrorInfo
EventData EventPattern EventResult EventResults FailedSlot Failure FailureGroup FailureList Fault FireRequest Fired
GatewayMessage Health HeartbeatRecord HopPayloads KeptHop KeptHops LaneView LegacyEnvelope LegacyFinal LegacyJob
LegacyProgress LegacyRoute LetterError LetterPage LetterQueue LetterView LogLine LogPage MeshNumbers Message
MissingSlice ObjectSource OpenCircuit PartialEvent PauseField PayloadText Policy Problem QueueState RecentError
Redriven RepeatedSlices ReplayRequest Replayed Resolution ResumeRequest Resumed RetryNote RetryView Route Rule
RunDetails RunLine RunNote RunNumbers RunOutcomes RunPage SetView ShownValue SingleEvent SlotView SlotsRequest
StageNote StageSkew StartRequest Started StartedBy StreamToken Success TaskEvent TaskList TaskPause TaskProblem TaskSet TaskView
Timeline TimelineEntry ToolAnswer ToolRequest ToolRoute TriggerList TriggerView Unread Usage
"""
"""The components of the OpenAPI document: generated clients name their types after them."""


COMMANDS = {
    "init": "NAME --template",
    "new actor": "NAME --mesh",
    "new spark-actor": "NAME --mesh",
    "new tool": "NAME --route --mesh",
    "demo": "--keep --approve --state",
    "dev": "--mesh --state --stage --secrets",
    "run": "HANDLER --payload --next --id --data --mesh --stage --json",
    "call": "TOOL ARGUMENTS --wait -w --state --namespace --region --profile",
    "send": "EVENT --actor --next --id --new-id --wait -w --mesh --state --namespace --region --profile",
    "smoke": "--mesh --stage --tool --arguments --alarms --timeout --json --state --namespace --region --profile",
    "status": "ENVELOPE_ID --follow -f --timeline --json --state --namespace --region --profile",
    "data ls": "FOLDER --limit -n --json --state --namespace --region --profile",
    "data get": "REFERENCE FILE --state --namespace --region --profile",
    "data put": "FILE REFERENCE --state --namespace --region --profile",
    "result": "ENVELOPE_ID --output -o --payload --state --namespace --region --profile",
    "list": (
        "--status --actor --tool --owner --error --since --roots --retrying --all --parent --limit -n "
        "--json --state --namespace --region --profile"
    ),
    "failures": "--actor --tool --owner --error --since --retrying --all --limit -n --json --state --namespace --region --profile",
    "actors": "--json --state --namespace --region --profile",
    "ui": "--port --no-browser --state --namespace --region --profile",
    "cancel": (
        "ENVELOPE_ID --running --actor --tool --owner --since --roots --dry-run --yes -y "
        "--json --state --namespace --region --profile"
    ),
    "replay": (
        "ENVELOPE_ID --failed --actor --tool --owner --error --since --dry-run --yes -y --from --from-checkpoint "
        "--failed-only --force --json --state --namespace --region --profile"
    ),
    "dismiss": (
        "ENVELOPE_ID --reason --undo --failed --actor --tool --owner --error --since --dry-run --yes -y "
        "--json --state --namespace --region --profile"
    ),
    "resume": (
        "ENVELOPE_ID --input --pause --paused --actor --tool --owner --since --dry-run --yes -y --json --state --namespace "
        "--region --profile"
    ),
    "dlq list": "ACTOR --id --error --since --limit --json --state --namespace --region --profile",
    "dlq show": "ENVELOPE_ID ACTOR --state --namespace --region --profile",
    "dlq reports replay": "--dry-run --json --state --namespace --region --profile",
    "dlq redrive": "ACTOR --id --error --since --limit --dry-run --yes -y --force --json --state --namespace --region --profile",
    "job list": "ACTOR --before --limit -n --json --vcpu-price --memory-price --state --namespace --region --profile",
    "job show": "RUN_ID --limit -n --json --vcpu-price --memory-price --state --namespace --region --profile",
    "job logs": "RUN_ID --executor --follow -f --state --namespace --region --profile",
    "job cancel": "RUN_ID --state --namespace --region --profile",
    "job drain": "ACTOR --reason --state --namespace --region --profile",
    "job undrain": "ACTOR --state --namespace --region --profile",
    "trigger list": "--json --state --namespace --region --profile",
    "trigger show": "NAME --json --state --namespace --region --profile",
    "trigger pause": "NAME --json --state --namespace --region --profile",
    "trigger resume": "NAME --json --state --namespace --region --profile",
    "trigger fire": "NAME --at --json --state --namespace --region --profile",
    "backfill start": (
        "NAME --from --to --at-once --stop-after --again --hold-paused --dry-run --follow -f --json --state --namespace --region "
        "--profile"
    ),
    "backfill list": "--json --state --namespace --region --profile",
    "backfill show": "BACKFILL_ID --follow -f --json --state --namespace --region --profile",
    "backfill resume": "BACKFILL_ID --json --state --namespace --region --profile",
    "backfill cancel": "BACKFILL_ID --json --state --namespace --region --profile",
    "local time": "SPAN --state --json",
    "local up": "--mesh --state --stage --secrets",
    "report": "--since --start --tool --json --state --namespace --region --profile",
    "logs": "SUBJECT --follow -f --since --task --json --state --namespace --region --profile",
    "validate": "--mesh --stage --limits --json",
    "graph": "--mesh --stage --format --output -o",
    "schema": "--mesh",
    "deploy": "--mesh --stage --yes -y --no-wait --drop-messages --bootstrap --context -c --output --region --profile",
    "diff": "--mesh --stage --context -c --output --region --profile",
    "cost": "--mesh --stage --idle --context -c --output --json",
    "destroy": "--mesh --stage --yes -y --no-wait --context -c --output --region --profile",
    "cdk": "ARGUMENTS --mesh --stage --context -c --output --region --profile",
    "doctor": "--mesh --stage --synthesized --json --region --profile",
    "contracts": "--mesh --stage --against --json --region --profile",
    "local down": "--state",
    "local env": "--state",
    "local status": "--state --json",
}
