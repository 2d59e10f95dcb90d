"""Keys that take text have the text of the file, whatever YAML makes of it; the schema says which keys these are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema_rs import validator_for

from asya.protocol.exact_json import encode_json
from asya_infra.mesh_file.schema import schema_text
from asya_infra.mesh_file.source import Location, places, read_source
from asya_infra.mesh_file.validation import WrittenText, value_at
from tests.unit.asya_infra.mesh_file.loading import load, mesh_problems, problems_of

pytestmark = pytest.mark.usefixtures("folder")

# Of the bug reports about YAML.
TRAPS = [
    "3.10",
    "012",
    "NO",
    "no",
    "on",
    "y",
    "12:30",
    "12:30:00",
    "+1",
    "-0",
    ".5",
    "1.",
    "1_000",
    "0x1F",
    "0o17",
    "0b11",
    "true",
    "True",
    "FALSE",
    "2026-11-27",
    "2026-13-45",
    "2026-11-27T10:00:00Z",
    "1e3",
    "1E400",
    "-1e400",
    ".inf",
    ".nan",
    "<<",
    "=",
    "1.0",
    "00",
    "0.10",
    "3544790567247868102",
    "007",
]
TEXT = ["string", "number", "boolean"]
SCHEMA = json.loads(schema_text())


def _scalars() -> st.SearchStrategy[str]:
    """Any plain scalar that YAML 1.1 takes for no text, in the forms of PyYAML, and those of the reports."""
    resolvers = {
        (tag, pattern)
        for some in yaml.SafeLoader.yaml_implicit_resolvers.values()
        for tag, pattern in some
        if not tag.endswith((":null", ":yaml"))  # no value, and what begins another construct of YAML
    }
    patterns = [pattern for _, pattern in sorted(resolvers, key=lambda each: each[0])]
    generated = st.one_of(*(st.from_regex(pattern, fullmatch=True) for pattern in patterns))
    return st.sampled_from((*TRAPS, "9" * 5000)) | generated.filter(lambda text: not re.search(r"[\t\n]", text))


def _example(schema: dict[str, Any], scalar: str, *, lists: bool) -> str | None:
    """Return YAML with the scalar at each place where a schema takes text; None if there is none.

    Args:
        schema: the schema of a value.
        scalar: the scalar.
        lists: whether a text that may be a list is one.
    """
    if "$ref" in schema:
        return _example(SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], scalar, lists=lists)
    if schema.get("type") == TEXT:
        return scalar
    if "anyOf" in schema:
        options = [text for option in schema["anyOf"] if (text := _example(option, scalar, lists=lists)) is not None]
        return options[-1 if lists else 0] if options else None
    if "items" in schema:
        item = _example(schema["items"], scalar, lists=lists)
        return None if item is None else f"[{item}]"
    keys = schema.get("properties") or {"any": schema.get("additionalProperties")}
    inner = {key: _example(value, scalar, lists=lists) for key, value in keys.items() if isinstance(value, dict)}
    found = [f"{json.dumps(key)}: {text}" for key, text in inner.items() if text is not None]
    return f"{{{', '.join(found)}}}" if found else None


def _read(text: str) -> dict[Location, Any]:
    """Return the single values of a mesh file, with their locations, as the model gets them."""
    Path("mesh.yaml").write_text(text)
    source = read_source(Path("mesh.yaml"))
    values = source.copy().values
    restored = WrittenText(source)
    restored.restore(values)
    assert not restored.problems
    singles = {place: value_at(values, place) for place in places(values)}
    return {place: value for place, value in singles.items() if not isinstance(value, dict | list)}


@given(scalar=_scalars(), lists=st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@pytest.mark.slow
def test_each_key_that_takes_text_has_what_is_written(scalar: str, lists: bool) -> None:
    text = _example(SCHEMA, scalar, lists=lists)
    assert text is not None
    is_flag = scalar.lower() in ("true", "false")
    for place, value in _read(text).items():
        # `read: true` grants everything.
        expected = (scalar.lower() == "true") if is_flag and place[-1] in ("read", "write") else scalar
        assert value == expected, place


def test_the_keys_that_take_text_are_these_among_others() -> None:
    places_of_text = set(_read(_example(SCHEMA, "3.10", lists=False) or ""))
    actor = ("actors", "any")
    for place in (
        ("namespace",), ("code",), ("operators", 0), ("region",), ("account",), ("tags", "any"), ("vpc", "subnets"),
        (*actor, "env", "any"), (*actor, "secrets", "any"), (*actor, "handler"), (*actor, "spark", "conf", "any"),
        (*actor, "spark", "archives", 0), (*actor, "pause", "prompt"), (*actor, "pause", "fields", 0, "name"),
        (*actor, "access", 0, "statement", "Condition", "any", "any"), (*actor, "resiliency", "rules", 0, "policy"),
        ("defaults", "env", "any"), ("tools", "any", "description"), ("tools", "any", "route", 0),
        ("triggers", "any", "cron"), ("triggers", "any", "timezone"), ("triggers", "any", "s3", "prefix"),
        ("agent", "version"), ("stages", "any", "tags", "any"), ("stages", "any", "actors", "any", "env", "any"),
    ):  # fmt: skip
        assert place in places_of_text


@pytest.mark.parametrize("null", ["", "~", "null", "Null"])
def test_no_value_is_no_text(null: str) -> None:
    advice = 'should be text; got nothing; write "" for an empty text, or put the word in quotes'
    assert mesh_problems(f"tags:\n  team: {null}") == [f"5: tags.team: {advice}"]
    assert problems_of(f"namespace: shop\nactors:\n  a:\n    handler: shop.one\n    env:\n      AB: {null}\n") == [
        f"6: actors.a.env.AB: {advice}"
    ]
    assert load(f"namespace: shop\nactors: {{a: {{handler: shop.one}}}}\nagent:\n  name: {null}\n").mesh.agent


MESH = """
namespace: shop
defaults: {{env: {{INHERITED: {scalar}}}}}
actors:
  a:
    handler: shop.one
    env: {{OWN: {scalar}, OTHER: 0.50}}
  k:
    handler: shop.one
    env: [{{name: LISTED, value: {scalar}}}]
  j:
    spark: {{job: heavy.crunch, conf: {{spark.app.version: {scalar}}}}}
  p:
    kind: pause
    pause:
      prompt: {scalar}
      fields:
      - {{name: version, type: string, default: {scalar}, options: [{scalar}, 3.9]}}
      - {{name: amount, type: number, default: 3.10}}
tags: {{version: {tag}}}
tools: {{t: {{description: {scalar}, route: [a]}}}}
stages:
  test: {{tags: {{version: 0.10}}, actors: {{a: {{env: {{OTHER: {scalar}}}}}}}}}
"""


def _tag(scalar: str) -> str:
    """Return the scalar, or another text for one that AWS takes in no tag."""
    return scalar.replace("<<", "merged")


def _mesh(scalar: str) -> str:
    return MESH.format(scalar=scalar, tag=_tag(scalar))


@pytest.mark.parametrize("scalar", TRAPS)
def test_the_model_has_what_is_written(scalar: str) -> None:
    loaded = load(_mesh(scalar))
    mesh, actors = loaded.mesh, loaded.mesh.actors
    assert actors["a"].env == {"INHERITED": scalar, "OWN": scalar, "OTHER": "0.50"}
    assert actors["k"].env == {"INHERITED": scalar, "LISTED": scalar}
    assert mesh.tags == {"version": _tag(scalar)}
    assert mesh.tools["t"].description == scalar
    spark, pause = actors["j"].spark, actors["p"].pause
    assert spark is not None
    assert pause is not None
    assert spark.conf == {"spark.app.version": scalar}
    version, amount = pause.fields
    assert (pause.prompt, version.default, version.options) == (scalar, scalar, (scalar, "3.9"))
    assert amount.default == 3.1


@pytest.mark.parametrize("scalar", [scalar for scalar in TRAPS if "E400" not in scalar.upper()])
def test_an_editor_that_has_the_schema_warns_of_none_of_them(scalar: str) -> None:
    # The list of variables is a legacy form, which the schema does not have.
    Path("mesh.yaml").write_text(re.sub(r"env: \[.*\]", "env: {}", _mesh(scalar)))
    validator_for(SCHEMA).validate(read_source(Path("mesh.yaml")).values)


@pytest.mark.parametrize("keys", ["tags: {team: null}", "namespace: ~", "tools: {t: {description: }}"])
def test_an_editor_that_has_the_schema_warns_of_no_value(keys: str) -> None:
    Path("mesh.yaml").write_text(
        "actors: {a: {handler: shop.one}}\n" + ("" if "namespace" in keys else "namespace: shop\n") + keys
    )
    assert not validator_for(SCHEMA).is_valid(read_source(Path("mesh.yaml")).values)


def test_a_stage_replaces_the_written_text() -> None:
    staged = load(_mesh("3.10"), "test").mesh
    assert staged.tags == {"version": "0.10"}
    assert staged.actors["a"].env == {"INHERITED": "3.10", "OWN": "3.10", "OTHER": "3.10"}


@pytest.mark.parametrize("number", ["1e999", "-1e400", "9" * 5000])
def test_a_number_beyond_any_float_is_refused(number: str) -> None:
    problem = "is too large for a number; put it in quotes if it is text"
    assert mesh_problems(f"tools: {{t: {{route: [a], input_schema: {{minimum: {number}}}}}}}") == [
        f"4: tools.t.input_schema.minimum: {problem}"
    ]
    assert mesh_problems(f"max_hops: {number}") == [f"4: max_hops: {problem}"]
    assert mesh_problems(f"stages: {{test: {{max_hops: {number}}}}}") == [f"4: stages.test.max_hops: {problem}"]


# What a library or AWS reads has floats.
ROUNDED = {
    "tools.t.input_schema.minimum": "tools: {{t: {{route: [a], input_schema: {{minimum: {}}}}}}}",
    "triggers.t.event.detail.total[0]": "triggers: {{t: {{route: [a], event: {{detail: {{kind: [a], total: [{}]}}}}}}}}",
}


@pytest.mark.parametrize("where", ROUNDED)
@pytest.mark.parametrize(
    ("number", "rounded"),
    [
        ("12345678901234567.89", "1.2345678901234568e+16"),
        ("0.12345678901234567890", "0.12345678901234568"),
        ("1e-400", "0.0"),
        ("-1e-99999999999999999999", "-0.0"),
    ],
)
def test_a_decimal_that_a_float_would_round_is_refused(where: str, number: str, rounded: str) -> None:
    (problem, *_) = mesh_problems(ROUNDED[where].format(number))
    assert problem.startswith(f"4: {where}: has more digits than a number keeps")
    assert f" would make it {rounded};" in problem


@pytest.mark.rule("1.numbers")
@pytest.mark.parametrize(
    ("written", "text"),
    [
        *((number, number) for number in ("12345678901234567.89", "1.10", "-0.50", "1e-400", "1E3", "2.5")),
        *((".50", "0.50"), ("+1.10", "1.10"), ("-007.50", "-7.50"), ("1.", "1.0"), ("!!float 3", "3.0")),
    ],
)
def test_1_any_other_json_has_the_number_of_the_file(written: str, text: str) -> None:
    mesh = load(
        f"namespace: shop\nactors: {{a: {{handler: shop.one}}}}\n"
        f"triggers: {{t: {{route: [a], cron: 0 0 * * *, payload: {{total: [{written}]}}}}}}\n"
        f"tools: {{a: {{}}}}\nagent: {{skills: [{{id: a, price: {written}}}]}}\n"
    ).mesh
    assert encode_json(mesh.triggers["t"].payload) == f'{{"total":[{text}]}}'.encode()
    assert mesh.agent is not None
    assert encode_json(mesh.agent.skills) == f'[{{"id":"a","price":{text}}}]'.encode()


@given(number=st.integers() | st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_other_number_of_json_is_what_is_written(number: float) -> None:
    written = f"{number!r}0" if "." in repr(number) and "e" not in repr(number) else repr(number)
    mesh = load(
        f"namespace: shop\nactors: {{a: {{handler: shop.one}}}}\ntools: {{a: {{input_schema: {{maximum: {written}}}}}}}\n"
    ).mesh
    assert mesh.tools["a"].json_schema == {"maximum": number}


@pytest.mark.parametrize("value", ["!!int abc", "!!bool perhaps", "!!timestamp today", "!!float x"])
def test_a_value_that_does_not_fit_its_tag_is_refused(value: str) -> None:
    (problem,) = mesh_problems(f"tags: {{team: {value}}}")
    assert problem.startswith(f"4: tags.team: {value.split()[1]!r} is no value of tag:yaml.org,2002:")
