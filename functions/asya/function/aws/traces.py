"""Collects the spans of an invocation, and exports them before it ends (`protocol §15`)."""

from collections.abc import Callable, Sequence
from functools import cache

import boto3

from asya.function.aws.settings import Settings
from asya.function.spans import Span, is_recorded

Export = Callable[[Sequence[Span]], None]
"""Sends spans, or raises ExportError."""

# What one export encodes within its time limit. A job run may have 10,000 envelopes.
MAX_SPANS = 500
# A collector that does not answer would slow each invocation down by the time limit of the export.
PAUSE_SECONDS = 60.0


class ExportError(Exception):
    """Spans were not accepted; the message says why."""


class Traces:
    """The recorded spans since the last `flush`.

    A lost span is no lost envelope: after a failure, spans are dropped for a minute.
    """

    def __init__(self, export: Export, share: float, monotonic: Callable[[], float]) -> None:
        """Create the collector.

        Args:
            export: sends spans to the collector, or raises ExportError.
            share: the share of traces to record, from 0 to 1.
            monotonic: a clock in seconds.
        """
        self._export = export
        self._share = share
        self._monotonic = monotonic
        self._spans: list[Span] = []
        self._excess = 0
        self._paused_until = float("-inf")

    def add(self, span: Span | None) -> None:
        """Add a span if its trace is recorded; None stands for an envelope without a trace."""
        if span is None or not is_recorded(span.context, self._share):
            return
        if len(self._spans) < MAX_SPANS:
            self._spans.append(span)
        else:
            self._excess += 1

    def flush(self, warn: Callable[[int, str], None]) -> None:
        """Export the spans.

        Args:
            warn: called with the number of dropped spans and the reason.
        """
        spans, self._spans = self._spans, []
        if not spans:
            return
        if self._excess:
            warn(self._excess, f"one export has {MAX_SPANS} spans at most")
            self._excess = 0
        if self._monotonic() < self._paused_until:
            warn(len(spans), "the export failed less than a minute ago")
            return
        try:
            self._export(spans)
        except Exception as error:  # noqa: BLE001 - no envelope may return to its queue for the sake of a span
            self._paused_until = self._monotonic() + PAUSE_SECONDS
            warn(len(spans), str(error))


def build_traces(settings: Settings, monotonic: Callable[[], float]) -> Traces | None:
    """Build the collector of a function; None in a mesh without `telemetry`."""
    if settings.traces is None:
        return None
    endpoint, namespace = settings.traces.endpoint, settings.namespace

    def export(spans: Sequence[Span]) -> None:
        _exporter(namespace, endpoint)(spans)

    return Traces(export, settings.traces.share, monotonic)


@cache
def _exporter(namespace: str, endpoint: str) -> Export:
    # Imported for the first span: the SDK is in the layers of these meshes alone, and takes a quarter of a second.
    from asya.function.aws.otlp import otlp_export

    session = boto3.DEFAULT_SESSION or boto3.Session()
    return otlp_export(endpoint, namespace, session.get_credentials)
