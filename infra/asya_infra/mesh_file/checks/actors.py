"""Checks the actors: their kinds, code, retries, limits, pauses and waits."""

import math
import re
from collections.abc import Iterator
from pathlib import Path

from asya.capabilities.pauses.limits import longest_wait
from asya.capabilities.pauses.resume_input import problem_of
from asya.capabilities.pauses.shown import MOST_SHOWN, POINTER_CHARACTERS, prompt_problems
from asya.contracts.spark_types import is_name
from asya.protocol import names
from asya.protocol.exact_json import encode_json
from asya.protocol.json_pointer import check_pointer
from asya.protocol.mesh_table import BODY_LIMIT, Retention
from asya.protocol.pause import PauseField
from asya.protocol.wait import Wait
from asya.registry import Registry
from asya_infra import timings
from asya_infra.build.code_files import CodeFiles, code_files
from asya_infra.limits.aws_limits import LOG_DAYS
from asya_infra.mesh_file.actor_model import ActorSection, PauseSection, SparkSection
from asya_infra.mesh_file.checks.context import Context, Finding
from asya_infra.mesh_file.forms import format_duration
from asya_infra.mesh_file.mesh_model import CrewActorSection, RetentionSection
from asya_infra.mesh_file.process_settings import find_process_settings
from asya_infra.mesh_file.sections import plain
from asya_infra.mesh_file.source import Location, did_you_mean
from asya_infra.mesh_file.user_code import (
    CodeError,
    check_model,
    detect_shape,
    find_definition,
    hidden_modules,
)
from asya_infra.product.places import JOB_LIBRARY


def check_kinds(context: Context) -> Iterator[Finding]:
    """Check that each actor has one kind, and only the keys of that kind."""
    for name, actor in context.mesh.actors.items():
        for key, message in (*_kind_findings(actor, context.registry), *_options(actor, context.registry)):
            yield (("actors", name, key) if key else ("actors", name)), message


def _kind_findings(actor: ActorSection, registry: Registry) -> Iterator[tuple[str, str]]:
    if actor.kind == "end":
        yield from _end_actor(actor)
    else:
        named = [key for key in ("handler", "spark", "kind") if getattr(actor, key) is not None]
        if not named:
            yield "", "needs handler (a light actor), spark (a heavy actor) or kind (a special actor)"
        elif len(named) > 1:
            yield named[-1], f"has {' and '.join(named)}; keep one of them"
        if not actor.validate:
            yield "validate", "only a user's own end actor (kind: end) may turn off validation"
    if actor.fan_in is not None and actor.fan_in.quorum is not None and actor.fan_in.on_failure == "fail":
        yield "fan_in", "has a quorum, which needs on_failure: partial"
    for kind in registry.kinds:
        # The key of a kind may be an option, which has a default.
        if kind not in registry.options and getattr(actor, kind, None) is not None and actor.kind != kind:
            yield kind, f"needs kind: {kind}"


def _options(actor: ActorSection, registry: Registry) -> Iterator[tuple[str, str]]:
    """Check the options that capabilities declare."""
    for key, option in registry.options.items():
        if key not in actor.written:
            if option.is_required and actor.kind in option.kinds:
                yield "", f"an actor of kind: {actor.kind} needs {key}, such as {key}: {option.example}"
            continue
        if option.kinds and actor.kind not in option.kinds:
            yield key, f"needs kind: {' or '.join(option.kinds)}"
        elif option.handler_modes and (actor.handler is None or actor.handler_mode not in option.handler_modes):
            yield key, f"needs a handler with handler_mode: {' or '.join(option.handler_modes)}"


def _end_actor(actor: ActorSection) -> Iterator[tuple[str, str]]:
    """Check a user's end actor: its handler needs the whole, unvalidated envelope with its status (`protocol §14`)."""
    if actor.handler is None:
        yield "", "an end actor (kind: end) needs a handler"
    if actor.spark is not None:
        yield "spark", "an end actor (kind: end) cannot be heavy; give it a handler"
    if actor.handler_mode == "payload":
        yield "handler_mode", "an end actor (kind: end) needs handler_mode: envelope, or envelope-v1"
    if actor.validate:
        yield "validate", "an end actor (kind: end) needs validate: false"


# User code comes before the library on the path, and `mesh.json` is the actor table.
_RESERVED_FILES = ("asya", "asya.py", "asya_spark", "mesh.json")


def check_code(context: Context) -> Iterator[Finding]:
    """Check that handlers, job functions and the types of payloads exist, and that no file hides a module of the mesh."""
    code = code_files(context.folder / context.mesh.code)
    jobs = code_files(context.folder / context.mesh.jobs, without=JOB_LIBRARY)
    if any(actor.handler for actor in context.mesh.actors.values()):
        yield from _folder("code", code)
    if any(actor.spark for actor in context.mesh.actors.values()):
        yield from _folder("jobs", jobs)
    for name, actor in context.mesh.actors.items():
        try:
            if actor.handler is not None and code.folder.is_dir():
                _check_deployed(code, find_definition(code.folder, actor.handler).path)
        except CodeError as error:
            yield ("actors", name, "handler"), str(error)
        if actor.spark is not None and jobs.folder.is_dir():
            for key, problem in _job(jobs, actor.spark):
                yield ("actors", name, "spark", key), problem


def _check_deployed(code: CodeFiles, path: Path) -> None:
    """Check that a module is deployed.

    Raises:
        CodeError: it is not.
    """
    reason = code.why_left_out(path.relative_to(code.folder).as_posix())
    if reason is not None and JOB_LIBRARY not in path.resolve().parents:
        raise CodeError(f"{path} is not deployed: {reason}")


def _job(jobs: CodeFiles, spark: SparkSection) -> Iterator[tuple[str, str]]:
    """Yield the key and the problem of a job function, and of the type of its payloads."""
    declared = spark.payload_schema
    try:
        if declared and is_name(declared):
            check_model(jobs.folder, declared)
    except CodeError as error:
        yield "payload_schema", str(error)
    try:
        shape = detect_shape(jobs.folder, spark.job)
        _check_deployed(jobs, find_definition(jobs.folder, spark.job).path)
    except CodeError as error:
        yield "job", str(error)
        return
    if declared and shape == "payload":
        yield (
            "payload_schema",
            f"{spark.job!r} takes one payload and no DataFrame; remove this key, and annotate the payload instead",
        )
    for path, line, setting in find_process_settings(jobs.folder, spark.job) if spark.parallel > 1 else ():
        yield (
            "parallel",
            f"{path}:{line} changes {setting}, which the envelopes at work at the same time share; set it for all of them, in env "
            "or spark.conf of the actor or outside of functions, or remove this key",
        )


def _folder(key: str, code: CodeFiles) -> Iterator[Finding]:
    folder = code.folder
    if not folder.is_dir():
        yield (key,), f"there is no folder {folder}"
    for each in code.problems:
        yield (key,), f"{folder / each.path} {each.reason}"
    for name in _RESERVED_FILES:
        if (folder / name).exists() and (folder / name).resolve() != JOB_LIBRARY:
            yield (key,), f"{folder / name} would hide a file of the mesh with the same name; rename it"
    for path, module in hidden_modules(folder):
        if path.name not in _RESERVED_FILES:
            yield (key,), f"{path} would hide the module {module!r}, which other code imports; rename it"


def check_resiliency(context: Context) -> Iterator[Finding]:
    """Check that each rule names a policy, and that only light actors have a circuit breaker."""
    for name, actor in context.mesh.actors.items():
        policies = actor.resiliency.policies
        if actor.resiliency.circuit_breaker is not None and (actor.handler is None or actor.kind is not None):
            place = ("actors", name, "resiliency", "circuit_breaker")
            yield place, "only a light actor may have a circuit breaker; remove it, or set it to null"
        for index, rule in enumerate(actor.resiliency.rules):
            if rule.policy not in policies:
                known = f"this actor has {', '.join(sorted(policies))}" if policies else "this actor has none"
                yield (
                    ("actors", name, "resiliency", "rules", index, "policy"),
                    f"there is no policy {rule.policy!r}; {known}{did_you_mean(rule.policy, policies)}",
                )


_DAY = 86400
_VARIABLES_LIMIT = 3000  # of Lambda's 4 KB; the mesh's own variables need the rest
_SMALL_BATCH = 10  # a larger batch of SQS needs a window
_LIGHT_WINDOW = 300  # the limit of an event source mapping
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
_CALLS_OF_A_POLLER = 10
_MOST_CALLS = (
    1_250  # of a queue without a limit; https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
)
# A message may stay in its queue and then in the dead-letter queue before its payload is needed.
_MIN_PAYLOAD_DAYS = timings.QUEUE_RETENTION_DAYS + timings.DLQ_RETENTION_DAYS


def check_limits(context: Context) -> Iterator[Finding]:
    """Check numbers against each other and against the limits of AWS."""
    for name, actor in context.mesh.actors.items():
        for location, message in _actor(actor):
            yield ("actors", name, *location), message
    for name in (names.SINK, names.SUMP):
        for location, message in _warm(context.mesh.crew.of(name)):
            yield ("crew", name, *location), message
    yield from _retention(context.mesh.storage.retention)
    if not 1024 <= context.mesh.gateway.max_body <= BODY_LIMIT:
        yield (
            ("gateway", "max_body"),
            (
                f"should be from 1k to {BODY_LIMIT // 1024}k: an event of Lambda has 6 MB, and each quote, backslash and line "
                "break of a body counts twice in it; pass a reference instead of larger data"
            ),
        )


def _actor(actor: ActorSection) -> Iterator[Finding]:
    if actor.pollers is not None:
        if "concurrency" in actor.written:
            yield ("concurrency",), "conflicts with pollers: Lambda takes one of them; remove this key"
        if actor.pollers.min > actor.pollers.max:
            yield ("pollers", "min"), f"is more than max ({actor.pollers.max})"
    elif actor.reserved is not None and actor.reserved < actor.concurrency:
        yield (
            ("reserved",),
            f"is less than concurrency ({actor.concurrency}), so messages would use up receives; set both to the same",
        )
    yield from _warm(actor)
    size = sum(len(name) + len(value) for name, value in actor.env.items())
    if size > _VARIABLES_LIMIT:
        yield ("env",), f"has {size} characters; at most {_VARIABLES_LIMIT} fit into Lambda's 4 KB"
    if actor.spark is None:
        yield from _light(actor)


def _warm(section: ActorSection | CrewActorSection) -> Iterator[Finding]:
    """Check that not more instances are warm than run at once. Lambda refuses more than are reserved."""
    key, most = "concurrency", section.concurrency or _MOST_CALLS
    if isinstance(section, ActorSection) and section.pollers is not None:
        key, most = "pollers.max", section.pollers.max * _CALLS_OF_A_POLLER
        if section.reserved is not None:
            key, most = "reserved", section.reserved
    if section.provisioned > most:
        yield ("provisioned",), f"is more than the {most} instances that run at once ({key}); make it {most} or less"


def _light(actor: ActorSection) -> Iterator[Finding]:
    needed = timings.function_timeout(actor.timeout, actor.batch.size)
    if needed > timings.FUNCTION_TIMEOUT_LIMIT:
        most = math.floor((timings.FUNCTION_TIMEOUT_LIMIT - timings.MARGIN) / actor.timeout)
        advice = (
            f"set batch.size to {most} or less, or shorten the timeout" if most else "make it a heavy actor (spark)"
        )
        yield (
            ("timeout",),
            f"{format_duration(actor.timeout)} × a batch of {actor.batch.size} + {timings.MARGIN}s margin = {needed}s, "
            f"but the limit of Lambda is {timings.FUNCTION_TIMEOUT_LIMIT}s; {advice}",
        )
    if actor.batch.size > _SMALL_BATCH and actor.batch.window < 1:
        yield ("batch",), f"a size of {actor.batch.size} (more than {_SMALL_BATCH}) needs a window of 1s or more"
    if actor.batch.window > _LIGHT_WINDOW:
        yield ("batch", "window"), f"should be at most {_LIGHT_WINDOW}s for a light actor"
    elif not actor.batch.window.is_integer():
        yield ("batch", "window"), "should be whole seconds for a light actor"


def _retention(retention: RetentionSection) -> Iterator[Finding]:
    for key in ("tasks", "payloads", "runs", "results"):
        seconds: float | None = getattr(retention, key)
        if seconds is not None and (seconds < _DAY or seconds % _DAY):
            yield ("storage", "retention", key), "should be whole days, such as 30d"
    if retention.logs not in {days * _DAY for days in LOG_DAYS}:
        days = ", ".join(map(str, LOG_DAYS))
        yield ("storage", "retention", "logs"), f"should be a number of days that CloudWatch offers: {days}"
    if retention.payloads < _MIN_PAYLOAD_DAYS * _DAY:
        yield (
            ("storage", "retention", "payloads"),
            f"should be at least {_MIN_PAYLOAD_DAYS}d: a message with a claim check may stay "
            f"{timings.QUEUE_RETENTION_DAYS}d in a queue and {timings.DLQ_RETENTION_DAYS}d in a dead-letter queue",
        )


# Each report of a pause and the task's record contain the prompts and options.
_TEXT_LIMIT = 32 * 1024
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+|https://[^/\s]+\S*|arn:[^:\s]+:sqs:[^:\s]+:\d{12}:[^:\s]+")


def check_pauses(context: Context) -> Iterator[Finding]:
    """Check the fields and notification addresses of each pause actor."""
    for name, actor in context.mesh.actors.items():
        if actor.pause is not None:
            yield from _pause_findings(actor.pause, ("actors", name, "pause"))


def _pause_findings(pause: PauseSection, place: Location) -> Iterator[Finding]:
    yield from (((*place, "prompt"), problem) for problem in prompt_problems(pause.prompt))
    yield from _shown_findings(pause.show or (), (*place, "show"))
    field_names: set[str] = set()
    for index, field in enumerate(pause.fields):
        where = (*place, "fields", index)
        if field.name in field_names:
            yield (*where, "name"), f"a field {field.name!r} exists already; rename one of them"
        field_names.add(field.name)
        if field.payload_key is not None:
            try:
                check_pointer(field.payload_key)
            except ValueError as error:
                yield (*where, "payload_key"), str(error)
        asked = PauseField(name=field.name, type=field.type, options=field.options)
        if field.default is not None and (problem := problem_of(asked, field.default)):
            yield (*where, "default"), problem
    if pause.callback_key is not None:
        if not pause.callback:
            yield (*place, "callback_key"), "needs callback: true"
        try:
            check_pointer(pause.callback_key)
        except ValueError as error:
            yield (*place, "callback_key"), str(error)
    size = len(encode_json(plain(pause)))
    if size > _TEXT_LIMIT:
        yield place, f"has {size} bytes of prompts and options; {_TEXT_LIMIT} at most"
    for index, address in enumerate(pause.notify):
        if not _ADDRESS.fullmatch(address):
            expected = "an e-mail address, an https:// URL or the ARN of an SQS queue"
            yield (*place, "notify", index), f"should be {expected}; got {address!r}"


def _shown_findings(pointers: tuple[str, ...], place: Location) -> Iterator[Finding]:
    for index, pointer in enumerate(pointers):
        try:
            check_pointer(pointer)
        except ValueError as error:
            yield (*place, index), str(error)
        if pointer in pointers[:index]:
            yield (*place, index), f"{pointer!r} is there already; remove one of them"
        if len(pointer) > POINTER_CHARACTERS:
            yield (*place, index), f"has {len(pointer)} characters; {POINTER_CHARACTERS} at most"
    if len(pointers) > MOST_SHOWN:
        yield place, f"has {len(pointers)} values; {MOST_SHOWN} at most"


def check_waits(context: Context) -> Iterator[Finding]:
    """Check each wait actor: one time, a valid pointer, and no wait that outlives the record of its task."""
    kept = context.mesh.storage.retention
    longest = longest_wait(Retention(tasks=kept.tasks, payloads=kept.payloads)).total_seconds()
    for name, actor in context.mesh.actors.items():
        place: Location = ("actors", name)
        if actor.wait is not None:
            yield from _wait_findings(actor.wait, (*place, "wait"), longest)
        elif actor.kind == "wait":
            yield place, "a wait actor (kind: wait) needs wait, such as wait: {for: 3d}"


def _wait_findings(wait: Wait, place: Location, longest: float) -> Iterator[Finding]:
    if (wait.seconds is None) == (wait.until is None):
        yield place, "needs either for (a duration) or until (a JSON pointer into the payload)"
    if wait.until is not None:
        try:
            check_pointer(wait.until)
        except ValueError as error:
            yield (*place, "until"), str(error)
    if wait.seconds is not None and wait.seconds > longest:
        wanted, limit = format_duration(wait.seconds), format_duration(longest)
        yield (
            (*place, "for"),
            f"is {wanted}; this mesh holds an envelope for {limit} at most: make storage.retention.tasks and "
            "storage.retention.payloads longer, or the wait shorter",
        )
