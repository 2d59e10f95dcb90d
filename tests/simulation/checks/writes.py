"""Checks writes of records, sets, end claims and objects."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from asya.protocol import names
from asya.testing.services.process import Process, current_process
from tests.simulation.checks.keys import key_problems
from tests.simulation.checks.ledger import TERMINAL, Ledger, without_fingerprint
from tests.simulation.checks.observed_envelope import REFERENCE

RANKS = {"pending": 0, "running": 1, "paused": 2, "succeeded": 3, "failed": 3, "canceled": 3}


@dataclass
class WriteChecks:
    """Checks each written item and object."""

    ledger: Ledger

    def item_written(self, table: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> None:
        """Check a change of an item."""
        if table.endswith("-pending"):
            self.ledger.runs.item_written(before, after)
            return
        if after is None:
            return
        key = (after["pk"]["S"], after["sk"]["S"])
        if table.endswith("-hops"):
            mark = (key[0], without_fingerprint(key[1]))
            self.ledger.completed_hops.setdefault(mark, self.ledger.simulation.scheduler.seconds)
        if table.endswith("-tasks") and key[1] == "record":
            self._record_written(before, after)
        if table.endswith("-tasks") and key[1] == "key":
            now = self.ledger.simulation.scheduler.now.timestamp()
            for problem in key_problems(before, after, now, self.ledger.accepted.__contains__):
                self.ledger.report_violation(problem)
        if table.endswith("-fan-in") and key[1] == "set":
            for problem in self.ledger.sets.count_problems(before, after):
                self.ledger.report_violation(problem)
        if table.endswith("-sink") and key[1] == "claim":
            self.ledger.ends.claim_written(before, after, current_process().name.partition("/")[0])
            if before is not None and "phase" in before:
                self._claim_written(before, after)

    def _record_written(self, before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> None:
        """Within a generation a status never goes back, and an end changes only if it is provisional or was not claimed."""
        self.ledger.pauses.record_written(before, after, self.ledger.simulation.scheduler.seconds)
        old, new = (_status(before), _status(after)) if before else (("pending", -1), _status(after))
        task = after["pk"]["S"]
        self.ledger.simulation.log.note(self.ledger.simulation.scheduler.seconds, "record", f"{task}: {new[0]}")
        is_swept = new[0] == "failed" and old[0] not in TERMINAL and current_process().name.startswith(names.TASK_SWEEP)
        if is_swept and self.ledger.reports.is_late():
            self.ledger.report_violation(f"the sweep failed {task} while ends waited in {names.ENDS}")
        if new[1] < old[1]:
            self.ledger.report_violation(f"the record of {task} went back from generation {old[1]} to {new[1]}")
        if new[1] == old[1]:
            is_resumed = old[0] == "paused" and new[0] == "running"  # the registry of pauses checks it
            is_provisional = before is not None and "provisional" in before
            # An end and a pause replace a provisional end (`protocol §13`, provisional).
            is_replaced = is_provisional and (new[0] in TERMINAL or new[0] == "paused")
            if RANKS[new[0]] < RANKS[old[0]] and not is_resumed and not is_replaced:
                self.ledger.report_violation(f"the record of {task} went back from {old[0]} to {new[0]}")
            if new[0] == "canceled":
                self.ledger.canceled.setdefault(task, self.ledger.simulation.scheduler.seconds)
            else:
                self.ledger.canceled.pop(task, None)  # a claimed end has replaced the cancellation
            # An end that is claimed replaces the cancellation of a call (`protocol §13`, cancel).
            claim = self.ledger.ends.claim(task) or {}
            is_claimed = old[0] == "canceled" and claim.get("phase") == {"S": new[0]}
            if old[0] in TERMINAL and new[0] != old[0] and not is_provisional and not is_claimed:
                self.ledger.report_violation(f"the record of {task} was {old[0]} and became {new[0]}")

    def _claim_written(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        old, new = int(before["generation"]["N"]), int(after["generation"]["N"])
        # A provisional end gives way, to a cancellation only of a call, or after a pause (`protocol §11`, provisional).
        has_paused = "pause_epoch" in before and int(before["pause_generation"]["N"]) == old
        is_by_call = current_process().name.startswith(names.GATEWAY_API)
        is_provisional = before["provisional"]["BOOL"] and (
            after["phase"]["S"] != "canceled" or has_paused or is_by_call
        )
        if new < old or (new == old and before["phase"] != after["phase"] and not is_provisional):
            self.ledger.report_violation(
                f"the end of {after['pk']['S']} was {before['phase']['S']} ({old}) and became {after['phase']['S']} ({new})"
            )

    def object_written(self, key: str, body: bytes, by: Process, before: bytes | None) -> None:
        """Check a written object and the object that it replaced."""
        if key.startswith("buffered/"):
            self.ledger.saved_frames.setdefault(without_fingerprint(key), self.ledger.simulation.scheduler.seconds)
        if key.startswith("buffered/") and before not in (None, body):
            self.ledger.report_violation(f"{by.name} replaced {key}, but only its first content counts")
        if key.startswith("runs/") and key.endswith("/manifest.json"):
            check = self.ledger.runs.batch_written if "/batches/" in key else self.ledger.runs.manifest_written
            check(key, body, before)
        self.ledger.pauses.object_written(key, body, before)
        if not key.startswith("results/") or key.startswith("results/checkpoint/") or "/unreadable/" in key:
            return
        try:
            envelope = json.loads(body)
        except ValueError:
            self.ledger.report_violation(f"{by.name} wrote {key}, which is not JSON")
            return
        reference = envelope.get("headers", {}).get(REFERENCE)
        # A failure whose payload is missing keeps the reference to it (`protocol §11`).
        is_missing = not isinstance(reference, dict) or reference.get("key") not in self.ledger.objects
        # x-sump writes it as canceled if its task was canceled meanwhile.
        is_canceled = key.startswith("results/canceled/") and by.name.startswith("x-sump/")
        is_failure = is_canceled or key.startswith(("results/sump/", "results/superseded/"))
        if reference is not None and not (is_failure and is_missing):
            self.ledger.report_violation(f"{key} contains the header {REFERENCE}")
        prefix = key.split("/")[1]
        phase = envelope.get("status", {}).get("phase")
        if prefix == "superseded":
            return
        if before is not None and prefix != "paused":
            self._end_replaced(key, before, envelope, by)
        if phase != ("failed" if prefix == "sump" else prefix):
            self.ledger.report_violation(f"{key} holds an envelope in phase {phase}")

    def _end_replaced(self, key: str, before: bytes, after: Any, by: Process) -> None:
        """The first object of an end stays; only a later generation replaces it (`protocol §11`, first-object)."""
        old, new = _generation(json.loads(before)), _generation(after)
        if old >= new:
            self.ledger.report_violation(f"{by.name} replaced {key} of generation {old} in generation {new}")

    def object_removed(self, key: str, body: bytes, by: Process) -> None:
        """Only the end of an earlier generation may be deleted, after the end of a later one is written (`protocol §11`)."""
        envelope_id = key.rpartition("/")[2].removesuffix(".json")
        claim = self.ledger.ends.claim(envelope_id)
        phase = claim["phase"]["S"] if claim else ""
        # A failure that did not pass x-sink has the copy of x-sump only.
        ends = [self.ledger.objects.get(f"results/{prefix}/{envelope_id}.json") for prefix in (phase, "sump")]
        written = [end for end in (ends if phase == "failed" else ends[:1]) if end is not None]
        if not any(_generation(json.loads(end)) > _generation(json.loads(body)) for end in written):
            self.ledger.report_violation(f"{by.name} deleted {key}, but {envelope_id} has no later end")


def _generation(envelope: Any) -> int:
    return int(envelope.get("headers", {}).get("x-asya-generation", 0))


def _status(record: Mapping[str, Any]) -> tuple[str, int]:
    return record["status"]["S"], int(record["generation"]["N"])
