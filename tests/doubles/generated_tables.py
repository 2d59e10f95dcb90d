"""Generated actor tables with every kind of actor and every option that permissions depend on."""

from typing import Any

from hypothesis import strategies as st
from msgspec import UNSET

from asya import registry
from asya.protocol import names
from asya.protocol.mesh_table import (
    Actor,
    CircuitBreaker,
    FanIn,
    Gateway,
    MeshTable,
    Policy,
    Resiliency,
    Sink,
    SparkJob,
    Tool,
)
from asya.protocol.pause import Pause
from asya.protocol.triggers import EventSource, Trigger, TriggerBatch, Webhook
from asya.protocol.wait import Wait

_NAMES = ("a", "ask", "bill", "check", "clean", "cool-down", "gather", "intake", "ship", "train")
_HOSTS = (
    "a1b2c3d4e5.execute-api.eu-west-1.amazonaws.com",
    "mesh.example.com",
    "b1.execute-api.us-east-1.amazonaws.com",
)
_SECRETS = ("shop/github", "ssm:/shop/hook", "orders")
_KINDS = sorted(registry.PRODUCT.actor_functions)
_CREW = (names.SINK, names.SUMP, names.CHECKPOINT, names.RESUME)


@st.composite
def mesh_tables(draw: st.DrawFn) -> MeshTable:
    """An actor table with a crew, and with actors, tools and triggers that fit each other."""
    own = draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=6, unique=True))
    more = draw(st.sampled_from((0, 0, 0, 60)))  # beyond the number of targets that a role names one by one
    own += [f"extra-{number}" for number in range(more)]
    actors = {name: draw(_actors(own)) for name in own[:8]} | {name: Actor(kind="handler") for name in own[8:]}
    crew: dict[str, Actor] = {
        names.FAN_IN: Actor(kind="fan_in", fan_in=FanIn()),
        names.PAUSE: Actor(kind="pause", pause=Pause()),
    }
    if draw(st.booleans()):
        crew[names.INDEX] = Actor(kind="spark", spark=SparkJob(job="compact"), can_send_to=())
    if any(actor.retries_after_days for actor in actors.values()):
        crew[names.WAIT] = Actor(kind="wait")
    disabled = draw(st.sampled_from((None, names.CHECKPOINT)))
    crew |= {name: Actor(kind="crew") for name in _CREW if name != disabled}
    routes = st.lists(st.sampled_from(own), min_size=1, max_size=3).map(tuple)
    tools = draw(st.dictionaries(st.sampled_from(("order", "refund")), routes, max_size=2))
    return MeshTable(
        namespace="shop",
        actors={**actors, **crew},
        tools={name: Tool(description="", route=route) for name, route in tools.items()},
        triggers=draw(st.dictionaries(st.sampled_from(("one", "two")), _triggers(routes, sorted(tools)), max_size=2)),
        sink=Sink(
            hooks=draw(st.lists(st.sampled_from(own), max_size=2).map(tuple)),
            index=draw(st.booleans()),
            failed_prefix=draw(st.sampled_from(("failed/", "bad/", "canceled/"))),
            succeeded_prefix=draw(st.sampled_from(("succeeded/", "bad/"))),
        ),
        gateway=Gateway(foreign_gateways=draw(st.lists(st.sampled_from(_HOSTS), max_size=3).map(tuple))),
    )


@st.composite
def _actors(draw: st.DrawFn, own: list[str]) -> Actor:
    kind = draw(st.sampled_from(_KINDS))
    targets = st.lists(st.sampled_from(own), max_size=3).map(tuple)
    by_kind: dict[str, dict[str, Any]] = {
        "spark": {"spark": SparkJob(job="job", linger=draw(st.sampled_from((0, 60))))},
        "fan_in": {"fan_in": FanIn()},
        "pause": {"pause": Pause(callback=draw(st.booleans()))},
        "wait": {"wait": Wait(seconds=60.0, deadline=draw(st.sampled_from(("runs", "stands"))))},
    }
    retries = {"default": Policy(max_interval=3 * 86400.0)} if draw(st.booleans()) else {}
    breaker = CircuitBreaker(failures=3, window=60.0, open_for=60.0) if draw(st.booleans()) else None
    return Actor(
        kind=kind,
        can_send_to=draw(st.none() | targets),
        options=draw(_options()) or UNSET,
        deduplicate=draw(st.booleans()),
        resiliency=Resiliency(policies=retries, circuit_breaker=breaker),
        **by_kind.get(kind, {}),
    )


def _options() -> st.SearchStrategy[dict[str, object]]:
    """Options of capabilities that are on or off."""
    keys = [key for key, option in registry.PRODUCT.options.items() if option.type is bool]
    return st.fixed_dictionaries({}, optional={key: st.booleans() for key in keys})


@st.composite
def _triggers(draw: st.DrawFn, routes: st.SearchStrategy[tuple[str, ...]], tools: list[str]) -> Trigger:
    source: dict[str, Any] = draw(
        st.sampled_from(
            (
                {"cron": "0 2 * * *"},
                {"event": EventSource(source=("shop",))},
                *({"webhook": Webhook(secret=secret, signature="github")} for secret in _SECRETS),
            )
        )
    )
    window: dict[str, Any] = draw(
        st.sampled_from(({}, {"debounce": 30.0}, {"batch": TriggerBatch(size=10, window=30.0)}))
    )
    tool = draw(st.sampled_from([None, *tools]))
    return Trigger(
        tool=tool,
        route=() if tool is not None else draw(routes),
        overlap=draw(st.sampled_from(("allow", "cancel-previous"))),
        **source,
        **window,
    )
