"""The dashboard that an operator keeps open: four numbers, then the tasks, the actors, the crew and what failed last."""

from collections.abc import Iterable
from typing import Any

from asya import registry
from asya.protocol import names
from asya_infra.constructs.observability.widgets import (
    WIDTH,
    Line,
    Page,
    Search,
    Widget,
    graph,
    log_table,
    number,
    text,
)
from asya_infra.mesh import Mesh
from asya_infra.permissions.groups import heavy_actors

_ACTOR = "${PROP('Dim.actor')}"
_QUEUE = "${PROP('Dim.QueueName')}"
_FUNCTION = "${PROP('Dim.FunctionName')}"


def overview(mesh: Mesh) -> dict[str, Any]:
    """Return the body of the dashboard. Its size depends on the features of the mesh, not on the number of its actors."""
    dashboard = _Overview(mesh)
    dashboard.fill()
    return {"start": "-PT3H", "widgets": dashboard.page.placed}


class _Overview:
    def __init__(self, mesh: Mesh) -> None:
        self.page = Page(mesh.addresses.region)
        self._mesh = mesh
        self._namespace = mesh.namespace
        self._is_heavy = bool(heavy_actors(mesh.table))

    def fill(self) -> None:
        self._head()
        self._numbers()
        self._tasks()
        self._actors()
        if self._is_heavy:
            self._job_runs()
        self._crew()
        self._reports()
        self._failures()

    def _head(self) -> None:
        dashboard = f"asya-{self._namespace}-{self._mesh.addresses.region}"
        links = (
            f"[One actor](#dashboards:name={dashboard}-actor)",
            f"[Alarms](#alarmsV2:?search=asya-{self._namespace}-)",
            f"[Logs](#logsV2:log-groups$3FlogGroupNameFilter$3Dasya-{self._namespace}-)",
        )
        self.page.row(text(f"# Mesh {self._namespace}\n{' · '.join(links)}", height=2))

    def _numbers(self) -> None:
        oldest = self._queue_search("ApproximateAgeOfOldestMessage", period=60)
        pauses = self._search("PausesOpen", statistic="Maximum", period=60)
        widgets = {
            "Failures": ([self._of_the_mesh("Failed", label="in this time range")], True),
            "Oldest waiting message": ([Line(expression=f"MAX({oldest})", label="seconds")], False),
            "Open pauses": ([Line(expression=f"SUM({pauses})", label="pauses")], False),
        }
        if self._is_heavy:
            runs = [
                Line(expression=f"SUM({self._search(metric, statistic='Maximum')})", label=label)
                for metric, label in (("RunsRunning", "running"), ("RunsQueued", "queued"))
            ]
            widgets["Job runs"] = (runs, False)
        width = WIDTH // len(widgets)
        numbers = (number(title, lines, width=width, whole_range=whole) for title, (lines, whole) in widgets.items())
        self.page.row(*numbers)

    def _tasks(self) -> None:
        self.page.section("Tasks")
        received = self._of_the_mesh("Received", label="messages received")
        ended = self._of_the_mesh("TimeToResult", statistic="SampleCount", label="tasks ended")
        percentiles = [self._of_the_mesh("TimeToResult", statistic=each, label=each) for each in ("p50", "p95")]
        losses = (
            "Retried",
            "SlaExpired",
            "HopLimit",
            "Redelivered",
            "ReportsDropped",
            "ReportsRefused",
            "PreflightsSkipped",
        )
        throttles = Line(metric=("AWS/Lambda", "Throttles"), label="throttled calls")
        self.page.row(
            graph("Throughput", [received, ended], width=6),
            graph("Time to result (ms)", percentiles, width=6),
            graph("Retries and losses", [self._of_the_mesh(each, label=each) for each in losses], width=6),
            graph("Throttled calls of the account", [throttles], width=6),
        )

    def _actors(self) -> None:
        self.page.section("Actors: the ten with the highest values")
        own = tuple(f'NOT actor="{name}"' for name in registry.of(self._mesh.table).own_queues)
        reasons, dead_letters = (
            self._search("Failed", "reason", terms=own),
            self._search("DeadLetters", terms=own, statistic="Maximum"),
        )
        self.page.row(
            graph(
                "Failures by actor and reason",
                [Line(expression=reasons.top(), label=f"{_ACTOR} ${{PROP('Dim.reason')}}")],
                width=6,
            ),
            graph("Dead letters by actor", [Line(expression=dead_letters.top(), label=_ACTOR)], width=6),
            graph(
                "Oldest message by queue (s)",
                [Line(expression=self._queue_search("ApproximateAgeOfOldestMessage").top(), label=_QUEUE)],
                width=6,
            ),
            graph(
                "Errors by function",
                [Line(expression=self._function_search("Errors").top(), label=_FUNCTION)],
                width=6,
            ),
        )

    def _job_runs(self) -> None:
        self.page.section("Job runs")
        trouble = self._search("JobRuns", "state", terms=('(state="failed" OR state="waiting" OR state="refused")',))
        lines = [("Pending envelopes", "PendingEnvelopes"), ("Longest delay of a job run (s)", "RunDelay")]
        self.page.row(
            *(
                graph(title, [Line(expression=self._search(metric, statistic="Maximum").top(), label=_ACTOR)])
                for title, metric in lines
            ),
            graph(
                "Job runs that failed, waited or were refused",
                [Line(expression=trouble.top(), label=f"{_ACTOR} ${{PROP('Dim.state')}}")],
            ),
        )

    def _crew(self) -> None:
        self.page.section("Crew, sets and pauses")
        crew = (_any_of(registry.of(self._mesh.table).own_queues),)
        ends = self._search("Processed", "outcome", terms=(f'actor="{names.SINK}"',))
        self.page.row(
            self._by_actor("Messages received by the crew", self._search("Received", terms=crew)),
            graph("Ends at x-sink", [Line(expression=str(ends), label="${PROP('Dim.outcome')}")]),
            self._by_actor("Dead letters of the crew", self._search("DeadLetters", terms=crew, statistic="Maximum")),
        )
        swept = self._search("Sweeps", terms=(_any_of(registry.sweeps_of(self._mesh.table)),))
        self.page.row(
            self._by_actor("Finished sweeps", swept),
            self._by_actor("Open sets", self._search("FanInOpen", statistic="Maximum")),
            self._by_actor("Oldest pause (s)", self._search("PausedAge", statistic="Maximum")),
        )
        if self._mesh.table.triggers:
            self._triggers()

    def _triggers(self) -> None:
        self.page.section("Triggers")
        started = ("TriggersFired", "TriggersSkipped")
        lost = ("TriggersFailed", "SlotsMissed")
        webhooks = ("WebhooksTaken", "WebhooksRefused")
        self.page.row(
            graph("Starts", [self._of_the_mesh(each, label=each) for each in started]),
            graph("Failures and missed slots", [self._of_the_mesh(each, label=each) for each in lost]),
            graph("Webhooks", [self._of_the_mesh(each, label=each) for each in webhooks]),
        )

    def _reports(self) -> None:
        self.page.section("Reports")
        queues = {name: names.queue_name(self._namespace, name) for name in names.REPORT_QUEUES}
        dead = {name: names.dlq_name(self._namespace, name) for name in names.REPORT_QUEUES}
        age, visible, hidden = (
            "ApproximateAgeOfOldestMessage",
            "ApproximateNumberOfMessagesVisible",
            "ApproximateNumberOfMessagesNotVisible",
        )
        waiting = [_of_queue(queue, visible, label=f"{name} waiting") for name, queue in queues.items()]
        in_flight = [_of_queue(queue, hidden, label=f"{name} in flight") for name, queue in queues.items()]
        self.page.row(
            graph("Oldest report (s)", [_of_queue(queue, age, label=name) for name, queue in queues.items()]),
            graph("Messages with reports", [*waiting, *in_flight]),
            graph("Dead letters of reports", [_of_queue(queue, visible, label=name) for name, queue in dead.items()]),
        )

    def _failures(self) -> None:
        self.page.section("What failed last")
        groups = [self._mesh.addresses.log_group_name(actor) for actor in (names.SUMP, names.DLQ)]
        query = (
            "fields @timestamp, envelope_id, coalesce(failed_actor, queue) as actor, reason, error_type, error_message",
            'filter message in ["envelope failed", "dead letter", "unreadable message"]',
            "sort @timestamp desc",
            "limit 20",
        )
        self.page.row(log_table("The last 20 failures", groups, query))
        region, table = self._mesh.addresses.region, names.table_name(self._namespace, "tasks")
        task = f"https://console.aws.amazon.com/dynamodbv2/home?region={region}#item-explorer?table={table}"
        links = [f"[{group}](#logsV2:log-groups/log-group/{group.replace('/', '$252F')})" for group in groups]
        how = "`asya status ID` shows a task: its route, its error with traceback, and its stored envelope"
        self.page.row(text(f"{how} ([all tasks]({task})). Logs: {', '.join(links)}", height=2))

    @staticmethod
    def _by_actor(title: str, search: Search) -> Widget:
        return graph(title, [Line(expression=str(search), label=_ACTOR)])

    def _of_the_mesh(self, metric: str, *, statistic: str = "Sum", label: str) -> Line:
        return Line(
            metric=(names.METRICS_NAMESPACE, metric, "namespace", self._namespace), statistic=statistic, label=label
        )

    def _search(
        self, metric: str, split: str = "", *, terms: tuple[str, ...] = (), statistic: str = "Sum", period: int = 300
    ) -> Search:
        schema = (names.METRICS_NAMESPACE, "namespace", "actor", *([split] if split else []))
        own = f'namespace="{self._namespace}"'
        return Search(schema=schema, metric=metric, terms=(own, *terms), statistic=statistic, period=period)

    def _queue_search(self, metric: str, *, period: int = 300) -> Search:
        terms = (f"QueueName={names.queue_name(self._namespace, '')}", "NOT QueueName=dlq")
        return Search(schema=("AWS/SQS", "QueueName"), metric=metric, terms=terms, statistic="Maximum", period=period)

    def _function_search(self, metric: str) -> Search:
        terms = (f"FunctionName=asya-{self._namespace}-",)
        return Search(schema=("AWS/Lambda", "FunctionName"), metric=metric, terms=terms)


def _of_queue(queue: str, metric: str, *, label: str) -> Line:
    return Line(metric=("AWS/SQS", metric, "QueueName", queue), statistic="Maximum", label=label)


def _any_of(actors: Iterable[str]) -> str:
    terms = " OR ".join(f'actor="{actor}"' for actor in actors)
    return f"({terms})"
