"""Made-up records and filters of lists, few values of each, so that they meet."""

from hypothesis import strategies as st

from asya.protocol.errors import ErrorInfo
from asya.protocol.task import TaskRecord, TaskRetry
from asya.protocol.times import format_time
from asya.tasks.failures import shortened_error
from asya.tasks.listing import STATUSES, TaskFilter
from tests.doubles.tasks import ACTORS, at, route_at

TOOLS = ("order", "night")
OWNERS = ("AIDAALICE", "jwt:bob#https://login.example.com/")
ERRORS = (
    None,
    ErrorInfo(type="KeyError", message="'price' of order 7"),
    ErrorInfo(type="KeyError", message="'price' of order 12", traceback="order 99"),
    ErrorInfo(type="Timeout", message="task timed out"),
)
REASONS = (None, "RuntimeError", "Timeout")
# Seconds: two of one hour, and two of other hours.
TIMES = (0.0, 7.0, 4_000.0, 90_000.0)


@st.composite
def records(draw: st.DrawFn, task_id: str = "t") -> TaskRecord:
    """A record; one that has not ended may be past its deadline."""
    created = format_time(at(draw(st.sampled_from(TIMES)) - 100_000))
    status = draw(st.sampled_from(STATUSES))
    position = draw(st.integers(0, 2))
    has_failed = status in ("failed", "canceled")
    retried = draw(st.sampled_from((None, None, *ERRORS[1:3])))
    return TaskRecord(
        id=task_id,
        status=status,  # type: ignore[arg-type]
        created_at=created,
        updated_at=created,
        parent_id=draw(st.sampled_from((None, "parent"))),
        owner=draw(st.sampled_from((None, *OWNERS))),
        tool=draw(st.sampled_from((None, *TOOLS))),
        actor=ACTORS[position],
        route=route_at(position),
        deadline_at=draw(st.sampled_from((None, format_time(at(30)), format_time(at(90))))),
        error=draw(st.sampled_from(ERRORS)) if has_failed else None,
        retry=retried and retry(ACTORS[position], draw(st.integers(0, 2)), retried),
        reason=draw(st.sampled_from(REASONS)) if has_failed else None,
    )


def retry(actor: str, position: int, error: ErrorInfo) -> TaskRetry:
    """The retry of an attempt at a hop."""
    times = {"at": format_time(at(0)), "next_at": format_time(at(60))}
    return TaskRetry(actor=actor, position=position, attempt=1, max_attempts=3, error=shortened_error(error), **times)


@st.composite
def meshes(draw: st.DrawFn) -> list[TaskRecord]:
    """The records of a mesh, in any order."""
    return [draw(records(f"t{number:02d}")) for number in range(draw(st.integers(0, 25)))]


def filters() -> st.SearchStrategy[TaskFilter]:
    """Filters of a list, most of them unset."""
    times = st.sampled_from([format_time(at(seconds - 100_000)) for seconds in TIMES])
    return st.builds(
        TaskFilter,
        status=st.none() | st.sampled_from(STATUSES),
        tool=st.none() | st.sampled_from(TOOLS),
        actor=st.none() | st.sampled_from(ACTORS),
        owner=st.none() | st.sampled_from(OWNERS),
        error=st.none() | st.sampled_from(["KeyError", "order 7", "order #", "Timeout", "RuntimeError", "99"]),
        since=st.none() | times,
        until=st.none() | times,
        roots=st.booleans(),
        retrying=st.booleans(),
    )
