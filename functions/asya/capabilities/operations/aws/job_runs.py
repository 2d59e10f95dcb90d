"""The job runs of a mesh as an operator reads them: records in the pending table, files in the mesh's bucket."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from asya.capabilities.operations.prices import Prices
from asya.heavy.aws.emr_serverless import TERMINAL_STATES
from asya.heavy.aws.heartbeats import Heartbeats
from asya.heavy.aws.manifests import Manifests
from asya.heavy.aws.run_items import RunRecord
from asya.heavy.aws.run_records import RunRecords
from asya.heavy.aws.run_results import RunResults
from asya.heavy.run_outcomes import RunOutcomes
from asya.protocol.job_runs import Usage, run_id


@dataclass(frozen=True, slots=True)
class RunReader:
    """What there is to read about the job runs of one mesh.

    Raises:
        ClientError, BotoCoreError: from every read, if AWS fails or denies access.
    """

    namespace: str
    records: RunRecords
    manifests: Manifests
    results: RunResults
    heartbeats: Heartbeats

    def run_id(self, record: RunRecord) -> str:
        """The id of a run."""
        return run_id(self.namespace, record.actor, record.number)


@dataclass(frozen=True)
class RunLine:
    """One run of a list.

    Attributes:
        state: the word of the run, as `run_word` gives it.
        emr_state: the state of its job run at EMR Serverless; empty without one.
        outcomes: its envelopes by outcome, as far as they are routed; None before that, and if they were not counted.
        usage, dollars: None until the run has ended.
    """

    run_id: str
    actor: str
    state: str
    is_open: bool
    envelopes: int
    formed_at: str
    usage: Usage | None
    dollars: float | None
    emr_state: str = ""
    outcomes: RunOutcomes | None = None


def read_runs(
    records: RunRecords, actors: Sequence[str], *, before: Mapping[str, int], limit: int, has_open: bool
) -> tuple[list[RunRecord], bool]:
    """Read the open runs, then `limit` of the others, newest first; and whether there are more.

    Args:
        records: the records of all runs.
        actors: the heavy actors.
        before: only older runs of an actor than this one, by actor; open runs count on the first page alone.
        limit: the maximum of ended runs, of all actors together.
        has_open: whether the page begins with the open runs.
    """
    opened: dict[tuple[str, int], RunRecord] = {}
    ended: list[RunRecord] = []
    for actor in actors:
        numbers = set(records.open_numbers(actor))
        if has_open:
            found = (records.get(actor, number) for number in sorted(numbers))
            opened |= {(actor, record.number): record for record in found if record is not None}
        closed = (record for record in records.recent(actor, before=before.get(actor)) if record.number not in numbers)
        ended += islice(closed, limit + 1)
    ended.sort(key=lambda record: record.formed_at, reverse=True)
    first = sorted(opened.values(), key=lambda record: record.formed_at, reverse=True)
    return [*first, *ended[:limit]], len(ended) > limit


def run_word(record: RunRecord) -> str:
    """Return the state of a run in a word or two; no other place decides it (`protocol §13.operations.runs.word`).

    It is that of its envelopes once they are routed, and until then how far the run is.
    """
    if record.state == "formed":
        return "formed"
    if record.state == "closed":
        return record.outcomes.word if record.outcomes is not None else "ended"
    if not record.job_run_id:
        return "refused"
    if record.resolution is not None or record.usage is not None:
        return "routing"
    return (record.job_state or "SUBMITTED").lower()


def emr_state(record: RunRecord) -> str:
    """Return the state of the job run at EMR Serverless, and whose batch or host the run is; empty without a job run."""
    if not record.job_run_id:
        return ""
    state = record.job_state or "SUBMITTED"
    if record.host is not None:
        return f"{state}, batch {record.host.batch} of run {record.host.number}"
    return f"{state}, resident" if record.is_resident and state not in TERMINAL_STATES else state


def line_of(name: str, record: RunRecord, prices: Prices) -> RunLine:
    """Return the line of a run.

    Args:
        name: the id of the run.
    """
    return RunLine(
        name,
        record.actor,
        run_word(record),
        record.state != "closed",
        record.members,
        record.formed_at,
        record.usage,
        prices.cost(record.usage) if record.usage else None,
        emr_state(record),
        record.outcomes,
    )
