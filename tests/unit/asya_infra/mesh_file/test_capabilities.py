"""The capabilities that a mesh file names: what is wrong with one is told at the line that names it."""

import json
import sys
from pathlib import Path

import pytest

from asya import registry
from asya.needs import Objects, Resource, writes
from asya.protocol.mesh_table import MeshTable
from asya_infra.mesh_file import to_table
from asya_infra.mesh_file.capability_model import mesh_model
from asya_infra.mesh_file.schema import schema_text
from tests.unit.asya_infra.mesh_file.loading import load, one_of, problems_of

pytestmark = pytest.mark.usefixtures("folder")

_IMPORTS = """
from dataclasses import replace
from typing import Annotated

from msgspec import Meta

from asya.api_call import ApiCall
from asya.manifest import ActorFunction, Capability, Command, Deployments, Function, Queues, Requests, Schedule
from asya.monitoring import Alarm, Metric, Series, Threshold
from asya.needs import Calls, Resource, writes
from asya.option import Option
from asya.predicates import is_actor
from asya.stores import Prefix, Table

WRITES = writes("audits/*")
KIND = dict(kind="gate", text="guards", entry_point="audit.code.gate", timeout=60, queues=Queues())
SWEEP = dict(name="x-audit", entry_point="audit.code.sweep", timeout=60)
EVERY = Schedule(minutes=1, rule="audit", checks="it", without="nothing")
LEVEL = Option[int](key="level", type=Annotated[int, Meta(ge=1, le=9)], default=3, text="How much it audits.")
STRICT = Option[bool](key="strict", type=bool, default=False, text="Whether.", kinds=("gate",))
RULES = Option[str](key="rules", type=str, text="What it asks.", kinds=("gate",), example="strict.json")
CALL = dict(method="GET", path="/api/v1/audits", handler="audit.code.Audits.all", function="x-audit", summary="Audits")
"""
_CODE = """
class Audits:
    def all(self, request, now): ...

gate = sweep = calls = None
"""
_MESH = "namespace: shop\ncapabilities: [audit]\nactors:\n  a: {handler: shop.one}\n"


def write(capability: str, *, package: str = "audit") -> None:
    """Write a package with a manifest."""
    folder = Path("functions/handlers") / package
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").touch()
    (folder / "code.py").write_text(_CODE)
    (folder / "manifest.py").write_text(f"{_IMPORTS}\n{capability}\n")


def of(**parts: str) -> str:
    """Return a declaration with these parts."""
    return f"CAPABILITY = Capability(name='audit', {', '.join(f'{name}={value}' for name, value in parts.items())})"


def test_a_mesh_has_the_kinds_and_the_options_of_its_capabilities() -> None:
    write(of(functions="(ActorFunction(**KIND),)", options="(LEVEL, STRICT)"))
    loaded = load(f"{_MESH}  g: {{kind: gate, strict: true}}\ndefaults: {{level: 4}}\n")
    table = to_table(loaded)
    assert (table.actors["g"].kind, table.actors["g"].options) == ("gate", {"level": 4, "strict": True})
    *_, level, strict = registry.of(table).options.values()
    assert (level.of(table.actors["a"]), strict.of(table.actors["a"]), strict.of(table.actors["g"])) == (4, False, True)
    assert "audit" not in {name.partition(".")[0] for name in sys.modules}


def test_the_roles_of_actors_with_an_option_may_do_what_it_needs() -> None:
    write(of(functions="(ActorFunction(**KIND),)", options="(LEVEL,)", option_needs="{'level': (WRITES,)}"))
    table = to_table(load(f"{_MESH}  b: {{handler: shop.one, level: 3}}\n  g: {{kind: gate, level: 4}}\n"))
    needs = {name: _needs(table, name) for name in ("a", "b", "g")}
    assert {name: writes("audits/*").keys in found for name, found in needs.items()} == {
        "a": False,
        "b": False,
        "g": True,
    }


def _needs(table: MeshTable, name: str) -> list[tuple[str, ...]]:
    declared = registry.function_of(name, table).needs
    return [need.keys for need in declared if isinstance(need, Objects) and need.when(table, name)]


def test_the_schema_describes_them() -> None:
    write(of(functions="(ActorFunction(**KIND),)", options="(LEVEL,)"))
    schema = json.loads(schema_text(mesh_model(load(_MESH).capabilities.registry)))
    actor = schema["$defs"]["ActorSection"]["properties"]
    assert "gate" in actor["kind"]["anyOf"][0]["enum"]
    assert "`gate`: guards." in actor["kind"]["description"]
    assert actor["level"] == schema["$defs"]["ActorSettings"]["properties"]["level"]
    assert {name: actor["level"][name] for name in ("default", "description", "minimum", "maximum")} == {
        "default": 3,
        "description": "How much it audits.",
        "minimum": 1,
        "maximum": 9,
    }


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("handler: shop.one, level: 10", "5: actors.b.level: should be at most 9; got 10"),
        ("handler: shop.one, level: many", "5: actors.b.level: should be a whole number; got 'many'"),
        ("handler: shop.one, levle: 1", "5: actors.b.levle: unknown key; did you mean 'level'?"),
        ("handler: shop.one, strict: true", "5: actors.b.strict: needs kind: gate"),
        (
            "kind: gates",
            f"5: actors.b.kind: should be {one_of([*registry.PRODUCT.kinds, 'gate'])}; got 'gates'; did you mean 'gate'?",
        ),
        ("kind: gate, handler: shop.one", "5: actors.b.kind: has handler and kind; keep one of them"),
    ],
)
def test_a_wrong_value_has_its_line_as_one_of_a_built_in_key(keys: str, problem: str) -> None:
    write(of(functions="(ActorFunction(**KIND),)", options="(LEVEL, STRICT)"))
    assert problems_of(f"{_MESH}  b: {{{keys}}}\n") == [problem]


@pytest.mark.parametrize(
    ("actor", "problems"),
    [
        ("kind: gate, rules: a.json", []),
        ("kind: gate", ["5: actors.b: an actor of kind: gate needs rules, such as rules: strict.json"]),
        ("handler: shop.one", []),
        ("handler: shop.one, rules: a.json", ["5: actors.b.rules: needs kind: gate"]),
    ],
)
def test_the_actors_of_a_kind_need_its_option_without_a_default(actor: str, problems: list[str]) -> None:
    write(of(functions="(ActorFunction(**KIND),)", options="(RULES,)"))
    assert problems_of(f"{_MESH}  b: {{{actor}}}\n") == problems


def test_an_option_without_a_default_has_no_value_of_another_actor() -> None:
    write(of(functions="(ActorFunction(**KIND),)", options="(RULES,)"))
    table = to_table(load(f"{_MESH}  g: {{kind: gate, rules: a.json}}\n"))
    *_, rules = registry.of(table).options.values()
    assert rules.of(table.actors["g"]) == "a.json"
    assert [rules.is_set(table.actors[name]) for name in ("a", "g")] == [False, True]
    with pytest.raises(LookupError, match="has no rules"):
        rules.of(table.actors["a"])


def test_a_change_of_a_manifest_is_read() -> None:
    write(of(options="(LEVEL,)"))
    first = to_table(load(_MESH))
    assert to_table(load(_MESH)).capabilities == first.capabilities
    write(of(options="(LEVEL, STRICT)").replace("(LEVEL, STRICT)", "(LEVEL,)") + "\nMORE = 1")
    assert to_table(load(_MESH)).capabilities != first.capabilities


def test_the_digest_leaves_out_what_the_manifest_does_not_import() -> None:
    """So a change of other code deploys no function whose code is the same."""
    write(of(options="(LEVEL,)"))
    first = to_table(load(_MESH)).capabilities
    Path("functions/handlers/audit/code.py").write_text(_CODE + "more = None\n")
    assert to_table(load(_MESH)).capabilities == first


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (
            "[nobody]",
            "capabilities[0]: there is no functions/handlers/nobody/manifest.py, which declares the capability",
        ),
        ("[audit, audit]", "capabilities[1]: 'audit' is named twice; keep one of them"),
        (
            "['../audit']",
            "capabilities[0]: should be the name of a package in the `code` folder, such as audit; got '../audit'",
        ),
        ("[]", None),
    ],
)
def test_a_name_leads_to_a_package_with_a_manifest(names: str, problem: str | None) -> None:
    write(of())
    found = problems_of(_MESH.replace("[audit]", names))
    assert found == ([] if problem is None else [f"2: {problem}"])


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        ("1 / 0", "manifest.py:24 cannot be read: ZeroDivisionError: division by zero"),
        ("exit(3)", "manifest.py:24 cannot be read: SystemExit: 3"),
        ("def", "manifest.py:24 cannot be read: SyntaxError: invalid syntax (manifest.py, line 24)"),
        (
            "CAPABILITY = 3",
            "manifest.py cannot be read: TypeError: it has no CAPABILITY = Capability(…) (`asya.manifest`)",
        ),
        (
            of(functions="(Function(name='audit', entry_point='audit.code.sweep', called_by=EVERY, timeout=9),)"),
            "the function 'audit': the name should begin with x-, which no actor of a mesh has",
        ),
        (
            of(functions="(Function(name='x-sink', entry_point='audit.code.sweep', called_by=EVERY, timeout=9),)"),
            "the function 'x-sink': the mesh has a function of this name already; rename it",
        ),
        (
            of(functions="(Function(**SWEEP, called_by=Deployments()),)"),
            "the function 'x-audit': should be called by Queues, Schedule or Requests",
        ),
        (
            of(functions="(Function(**SWEEP, called_by=Queues()),)"),
            "the function 'x-audit': takes from the queue of its own name, without envelopes (has_envelopes=False); "
            "actors have kinds",
        ),
        (
            of(functions="(ActorFunction(**{**KIND, 'kind': 'pause'}),)"),
            "the kind 'pause': the mesh has a kind of this name already; rename it",
        ),
        (
            of(functions="(ActorFunction(kind='gate', entry_point='audit.code.gate'),)"),
            "the kind 'gate': needs queues and a timeout, because its actors have no handler",
        ),
        (
            of(options="(Option(key='rules', type=str, text='What it asks.'),)"),
            "the option 'rules': without a default, it needs kinds whose actors must have it, and an example for the message",
        ),
        (
            of(functions="(ActorFunction(**{**KIND, 'entry_point': 'audit.code.gait'}),)"),
            "the kind 'gate': functions/handlers/audit/code.py has no 'gait'; did you mean 'gate'?",
        ),
        (
            of(functions="(ActorFunction(**{**KIND, 'entry_point': 'shop.one'}),)"),
            "the kind 'gate': the code should be in the package 'audit'; got 'shop.one'",
        ),
        (
            of(functions="(ActorFunction(**KIND, needs=(Calls(calls=('iam:PassRole',), on=Resource.JOB_ROLES),)),)"),
            "the kind 'gate': only functions of the product may call the roles of job runs, passed to EMR Serverless",
        ),
        *(
            (
                of(functions=f"(ActorFunction(**KIND, needs=(Calls(calls=('{call}',), on=Resource.{on.name}),)),)"),
                f"the kind 'gate': only functions of the product may call {on.value}",
            )
            for call, on in (
                ("emr-serverless:StartJobRun", Resource.APPLICATION),
                ("emr-serverless:CancelJobRun", Resource.JOB_RUNS),
            )
        ),
        (
            of(options="(Option[int](key='timeout', type=int, default=1, text='Again.'),)"),
            "the option 'timeout': actors have a key of this name already, or it is no name; rename it",
        ),
        (of(options="(STRICT,)"), "the option 'strict': there is no kind 'gate'"),
        (
            of(option_needs="{'strict': (WRITES,)}"),
            "the needs of the option 'strict': the capability declares no such option",
        ),
        (
            of(options="(LEVEL,)", option_needs="{'level': (replace(WRITES, when=is_actor),)}"),
            "the needs of the option 'level': they hold for actors with the option; leave `when` out",
        ),
        (
            of(options="(LEVEL,)", option_needs="{'level': (Calls(calls=('iam:PassRole',), on=Resource.JOB_ROLES),)}"),
            "the needs of the option 'level': only functions of the product may call the roles of job runs, passed to EMR "
            "Serverless",
        ),
        (
            of(calls="(ApiCall(**CALL),)"),
            "the call GET /api/v1/audits: should be answered by a function of the capability that Requests call; got 'x-audit'",
        ),
        (
            of(
                functions="(Function(**SWEEP, called_by=Requests()),)",
                calls="(ApiCall(**{**CALL, 'path': '/tools/call', 'method': 'POST'}),)",
            ),
            "the call POST /tools/call: the gateway has this call already",
        ),
        (
            of(prefixes="(Prefix(name='', holds='All', kept=1),)"),
            "the prefix '': should end with / and be in the bucket of the mesh",
        ),
        (
            of(prefixes="(Prefix(name='payloads/a/', holds='Some', kept=1),)"),
            "the prefix 'payloads/a/': its objects would expire with those of 'payloads/'; rename it",
        ),
        (
            of(tables="(Table(name='tasks', holds='Mine'),)"),
            "the table 'tasks': the mesh has it already, or it streams changes, which no function takes",
        ),
        (
            of(metrics="(Metric('Received'),)"),
            "the metric 'Received': the mesh has a metric of this name already; rename it",
        ),
        (
            of(
                alarms="(Alarm(name='audits', says='Look.', watched=Series(metric='Audits'), "
                "threshold=Threshold(key='audits', text='Audits.')),)"
            ),
            "the alarm 'audits': there is no metric 'Audits'",
        ),
    ],
)
def test_what_a_manifest_may_not_declare(manifest: str, problem: str) -> None:
    write(manifest)
    [found] = problems_of(_MESH)
    assert found.startswith("2: capabilities[0]: ")
    assert found.endswith(problem)


def test_two_capabilities_do_not_declare_the_same() -> None:
    write(of(options="(LEVEL,)"))
    write(of(options="(LEVEL,)"), package="again")
    assert problems_of(_MESH.replace("[audit]", "[audit, again]")) == [
        "2: capabilities[1]: the option 'level': actors have a key of this name already, or it is no name; rename it"
    ]


def test_a_table_of_capabilities_that_nobody_has_read_is_refused() -> None:
    write(of())
    table = to_table(load(_MESH))
    stranger = type(table)(namespace="shop", actors=table.actors, capabilities={"audit": "0" * 12})
    with pytest.raises(LookupError, match="'audit' is not loaded; load the mesh file"):
        registry.of(stranger)
