"""`python -m asya_infra.constructs.observability.page` writes docs/reference/alarms.md from the manifests."""

from collections.abc import Iterator

from asya import registry
from asya.monitoring import Alarm, Delay, Largest, Of, Series, Silence, Total
from asya.protocol import names
from asya_infra.mesh_file.notify_model import written
from asya_infra.product.places import FILES

PAGE = FILES / "docs" / "reference" / "alarms.md"
_HEAD = """# Alarms

Every alarm of a mesh. Its name begins with `asya-{namespace}-`. [Watch a mesh](../how-to/watch-a-mesh.md) explains who is told, and
what the monitoring costs. `python -m asya_infra.constructs.observability.page` writes the page from the
[manifests](../decisions/manifests.md#metrics-alarms-and-graphs).

| alarm | severity | threshold | what happened | graph of the overview | first step |
|---|---|---|---|---|"""
_THRESHOLDS = """
## Thresholds

Keys of `notify.thresholds` in the [mesh file](mesh-file.md#alarms). A value is a number, a share such as `5%`, or a time such as
`30m`; `none` removes the alarms. Counts are per five minutes.

| threshold | default | what it is about |
|---|---|---|"""
_EACH = {
    Of.QUEUES: "ten queues",
    Of.UNQUEUED: "the functions without a queue",
    Of.SWEEPS: "{sweep}",
}


def as_page() -> str:
    """Return the page."""
    declared = registry.PRODUCT
    alarms = [_row(each) for each in sorted(declared.alarms, key=lambda each: each.name)]
    return "\n".join([_HEAD, *alarms, _THRESHOLDS, *_thresholds(), ""])


def _log(function: str, each: str) -> str:
    """Return where the lines of a function are. A step of the clock has none of the streams for itself."""
    group = names.log_group("{namespace}", names.SINK)
    if function:
        return f"`{group}` (streams of `asya-{{namespace}}-{names.runner_of(function)}`)"
    return f"`{group}` (`asya logs {each}` shows its lines)"


def _row(alarm: Alarm) -> str:
    each, queue = "", ""
    match alarm.watched:
        case Total(series) | Largest(series) | Silence(series) if isinstance(series.of, Of):
            each = _EACH[series.of]
        case Delay(name) | Series(of=str(name)):
            queue = f"`asya-{{namespace}}-{name}`"
    says = alarm.says.format(
        mesh="`asya-{namespace}`",
        queue=queue,
        each=each,
        log=_log(alarm.log, each),
        undone="…",
    )
    name = alarm.name.format(each="{sweep}", number="{n}")
    return f"| `{name}` | {alarm.severity} | `{alarm.threshold.key}` | {says} | {alarm.graph} | {alarm.step} |"


def _thresholds() -> Iterator[str]:
    for key, threshold in sorted(registry.PRODUCT.thresholds.items()):
        bounds = f" Bounds: {threshold.bounds}." if threshold.bounds else ""
        yield f"| `{key}` | {written(threshold, threshold.default)} | {threshold.text}{bounds} |"


if __name__ == "__main__":
    PAGE.write_text(as_page(), encoding="utf-8")
