"""The job runs of a mesh as an operator reads them: lists, and all that is known about one run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec
from botocore.exceptions import ClientError

from asya.capabilities.operations.prices import Prices, Sharing, part_of, shares
from asya.heavy.aws.emr_serverless import TERMINAL_STATES
from asya.heavy.aws.run_files import Heartbeats, ManifestError, Manifests, ResultsError, RunOutput, RunResults
from asya.heavy.aws.run_records import Resolution, RunRecord, RunRecords
from asya.heavy.results import RunOutcomes, part_results, runs_again_larger
from asya.heavy.run_failures import LACKS_CAPACITY, FailureDecision, returned_members
from asya.protocol import states
from asya.protocol.job_runs import CallWork, Manifest, ResultHead, StageSkew, Usage, run_id
from asya.protocol.run_progress import HeartbeatRecord


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
        size: the name of its size; empty if its actor has none.
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
    size: str = ""


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
    """Return the state of the job run at EMR Serverless, and whose batch the run is, or that it is resident; empty without one."""
    if not record.job_run_id:
        return ""
    state = record.job_state or "SUBMITTED"
    if record.place is not None:
        return f"{state}, batch {record.place.batch} of run {record.place.number}"
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
        record.size,
    )


RESULTS_UNREADABLE = "result unreadable"
RESULTS_UNREAD = "has a result"
_SUMS = tuple(name for name in CallWork.__struct_fields__ if name != "skew")
_NAME_LIMIT = 80
_ENDS = {states.DONE: states.SUCCEEDED}
"""The words of the ends of results that differ from those of job libraries."""


@dataclass(frozen=True)
class EnvelopeLine:
    """One envelope of a run.

    Attributes:
        outcome: How its result ended, or what follows without one.
        milliseconds: The duration of its call; 0 if unknown.
        usage, dollars: Its share of the run; None until the run has ended.
        work: What Spark has measured of its call; None if unknown, and of a job with one call for all.
    """

    id: str
    generation: int
    position: int
    attempt: int
    outcome: str
    error: str = ""
    milliseconds: float = 0.0
    usage: Usage | None = None
    dollars: float | None = None
    work: CallWork | None = None


@dataclass(frozen=True)
class RunReport:
    """One run.

    Attributes:
        state: The word of the run (`run_word`).
        emr_state: The state of its job run at EMR Serverless; empty without one.
        outcomes: Its envelopes by outcome, as far as they are routed.
        verdict: Who is charged and who runs again; empty while that is not decided.
        attempts: The starts of the driver that wrote files, oldest first.
        problem: Why the envelopes are unknown.
        shared: How the usage is divided among the envelopes; None until the run has ended.
        size: The name of its size; empty if its actor has none.
        work: What Spark has measured of all its calls; None if unknown.
    """

    run_id: str
    state: str
    mesh_state: str
    job_run_id: str
    details: str
    formed_at: str
    running_at: str
    envelopes: int
    attempts: tuple[str, ...]
    verdict: str
    heartbeat: HeartbeatRecord | None
    usage: Usage | None
    dollars: float | None
    prices: str
    shared: Sharing | None
    members: tuple[EnvelopeLine, ...]
    problem: str = ""
    emr_state: str = ""
    outcomes: RunOutcomes | None = None
    size: str = ""
    work: CallWork | None = None


def read_report(mesh: RunReader, record: RunRecord, prices: Prices, *, most_bytes: float = float("inf")) -> RunReport:
    """Read everything about a run.

    Args:
        mesh: the runs of the mesh.
        record: the run.
        prices: what an hour of its resources costs.
        most_bytes: the size up to which results are read; of larger ones the report says only that they exist.

    Raises:
        botocore.exceptions.ClientError: AWS denies access.
    """
    attempts = tuple(mesh.results.attempts(record.folder))
    lines: tuple[EnvelopeLine, ...] = ()
    manifest, problem, shared, work = None, "", None, None
    try:
        manifest = mesh.manifests.read(record.actor, record.number, record.manifest_digest)
        if manifest is None:
            problem = "the files of the run are gone; S3 keeps them for a limited time"
    except ManifestError as error:
        problem = str(error)
    verdict = ""
    if manifest is not None:
        output = _output(mesh, record)
        if sum(part.size for part in output.parts) <= most_bytes:
            heads: Mapping[int, ResultHead | None] | None = _heads(mesh, record, output)
        else:
            heads, problem = None, "the results are too large to be read here"
        work = total_work([output.work, *(head.work for head in (heads or {}).values() if head is not None)])
        lines, shared = envelope_lines(record, manifest, output, heads, prices)
        verdict = verdict_of(manifest, record.resolution, output, record.outcomes) if record.resolution else ""
    return RunReport(
        mesh.run_id(record),
        run_word(record),
        record.state,
        record.job_run_id or "",
        record.details,
        record.formed_at,
        record.running_at or "",
        record.members,
        attempts,
        verdict,
        mesh.heartbeats.latest(record.folder, attempts[-1]) if attempts else None,
        record.usage,
        prices.cost(record.usage) if record.usage else None,
        prices.source,
        shared,
        lines,
        problem,
        emr_state(record),
        record.outcomes,
        record.size,
        work,
    )


def total_work(works: Iterable[CallWork | None]) -> CallWork | None:
    """Return the work of several calls together; None if that of none is known."""
    known = [work for work in works if work is not None]
    if not known:
        return None
    skewed = [_bounded(work.skew) for work in known if work.skew is not None]
    sums = {name: sum(getattr(work, name) for work in known) for name in _SUMS}
    return CallWork(**sums, skew=max(skewed, key=lambda skew: skew.longest_ms, default=None))


def _bounded(skew: StageSkew) -> StageSkew:
    """A skewed stage with a name of limited length: a job may write any."""
    return msgspec.structs.replace(skew, name=skew.name[:_NAME_LIMIT])


def _output(mesh: RunReader, record: RunRecord) -> RunOutput:
    """The output that counts, or would count if the run ended now."""
    resolution = record.resolution
    if resolution is not None:
        try:
            return mesh.results.read(
                record.folder, resolution.source, resolution.attempt, parts=resolution.parts, members=record.members
            )
        except ResultsError:
            pass  # its files have expired
    return mesh.results.find(record.folder, record.members)


def _heads(mesh: RunReader, record: RunRecord, output: RunOutput) -> dict[int, ResultHead | None]:
    """The head of each result by the index of its member; None for an unreadable one."""
    heads: dict[int, ResultHead | None] = {}
    for part in output.parts:
        try:
            lines = mesh.results.lines(record.folder, output.attempt, part)
            heads |= {result.index: result.head for result in part_results(part, lines)}
        except (ResultsError, ClientError):
            heads |= dict.fromkeys(range(part.first, part.last + 1))
    return heads


def envelope_lines(
    record: RunRecord,
    manifest: Manifest,
    output: RunOutput,
    found: Mapping[int, ResultHead | None] | None,
    prices: Prices,
) -> tuple[tuple[EnvelopeLine, ...], Sharing | None]:
    """Return a line for each envelope of a run, and how its usage is divided.

    Args:
        record: the run.
        manifest: its members.
        output: its results.
        found: the head of each result by the index of its member, None for an unreadable one; None for results that were not read.
        prices: what an hour of its resources costs.
    """
    members, usage, heads = manifest.members, record.usage, found or {}
    durations = [_duration(heads.get(index)) for index in range(len(members))]
    parts, how = shares(durations, manifest.shape) if members and usage else ([0.0] * len(members), None)
    outcomes = _outcomes(record, manifest, output)
    if found is None:
        outcomes = dict.fromkeys(range(len(members)), RESULTS_UNREAD) | outcomes
    lines = []
    for index, member in enumerate(members):
        head = heads.get(index)
        own = part_of(usage, parts[index]) if usage else None
        if index in heads:
            outcome = _ENDS.get(head.end, head.end) if head else RESULTS_UNREADABLE
            if (
                head is not None
                and record.resolution is not None
                and runs_again_larger(head, record.resolution.decision)
            ):
                outcome = _again_in(record.resolution.decision)
        else:
            outcome = outcomes.get(index, "waits")
        lines.append(
            EnvelopeLine(
                member.id,
                member.generation,
                member.position,
                member.attempt,
                outcome,
                f"{head.error.type}: {head.error.message}" if head and head.error else "",
                durations[index],
                own,
                prices.cost(own) if own else None,
                total_work([head.work]) if head else None,
            )
        )
    return tuple(lines), how


def _duration(head: ResultHead | None) -> float:
    return max(0.0, head.duration_ms) if head else 0.0


def _outcomes(record: RunRecord, manifest: Manifest, output: RunOutput) -> dict[int, str]:
    """What follows for the members without a result."""
    if record.resolution is None:
        return dict.fromkeys(output.at_work, "at work")
    decision, missing = record.resolution.decision, output.missing(len(manifest.members))
    back = returned_members(manifest, decision, missing)
    outcomes = dict.fromkeys(missing, "charged") | dict.fromkeys(back, "runs again")
    if decision.fate == "larger":
        return outcomes | {
            index: _again_in(decision) for index, member in back.items() if member.size == decision.larger
        }
    return outcomes | {index: "suspect, runs again alone" for index in decision.suspects if index in back}


def _again_in(decision: FailureDecision) -> str:
    return f"out of memory, runs again in size {decision.larger}"


def verdict_of(
    manifest: Manifest, resolution: Resolution, output: RunOutput, outcomes: RunOutcomes | None = None
) -> str:
    """Return how the envelopes of a run ended, who is charged with its end, and who runs again."""
    counts = f" ({outcomes.text})" if outcomes is not None else ""
    missing = output.missing(len(manifest.members))
    back = len(returned_members(manifest, resolution.decision, missing))
    if not missing:
        again = f"; what ran out of memory runs again in size {resolution.decision.larger}"
        return f"every envelope has a result{again if outcomes is not None and outcomes.again else ''}{counts}"
    if output.error is not None:
        text = f"the job failed with {output.error.type}: {output.error.message}"
    elif output.source == "commit":
        text = "the run had no time for the rest" if back else "the job returned no result for the rest"
    else:
        text = _failure(manifest, resolution.decision)
    return f"{text}; charged: {len(missing) - back}, run again uncharged: {back}{counts}"


def _failure(manifest: Manifest, decision: FailureDecision) -> str:
    """Why a run without a commit is charged as it is."""
    if decision.convicted is not None:
        return f"{manifest.members[decision.convicted].id} was the first and only envelope at work, so it is charged"
    if decision.fate == "larger":
        who = f"{_counted(len(decision.suspects), 'envelope')} at work" if decision.suspects else "all without a result"
        return f"the run died of memory in size {manifest.size}, so {who} to run again in size {decision.larger}"
    if decision.suspects:
        return f"suspected: {_counted(len(decision.suspects), 'envelope')} at work, to run again one at a time"
    if decision.fate == "halved":
        return "no envelope was at work; the others run again in two halves"
    if decision.fate in LACKS_CAPACITY:
        return "EMR Serverless lacked capacity"
    return "the run failed"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
