"""Chooses the meshes that `scripts/real-account-smoke --all` deploys, and writes them: `python -m tests.real_account.meshes`.

Every option that the account can have is in a mesh and missing in another one, and as many pairs of options as possible meet in
each way: both, one of them, none.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from tests.paths import PROJECT
from tests.real_account.options import BASE, RISKS, UNREACHABLE, Risk, set_in, settings

MESHES = 4
Choice = frozenset[str]
"""The names of the options of a mesh."""


@dataclass(frozen=True)
class Plan:
    """What is deployed, and what that shows.

    Attributes:
        meshes: the options of each mesh.
        changes: the options of each mesh after its change.
        left_out: the options that the account cannot have, with the values that they need.
        pairs, covered: the pairs of values of two options that exclude each other not, and those that a mesh has.
    """

    meshes: tuple[Choice, ...]
    changes: tuple[Choice, ...]
    left_out: Mapping[str, tuple[str, ...]]
    pairs: int
    covered: int


def plan(given: Mapping[str, Any]) -> Plan:
    """Choose the meshes.

    Args:
        given: what the account has, such as `{"kms_key": "arn:…"}`.
    """
    left_out = {risk.name: missing for risk in RISKS if (missing := tuple(n for n in risk.account if n not in given))}
    risks = [risk for risk in RISKS if risk.name not in left_out]
    possible = {pair for pair in _all_pairs(risks) if _is_possible(pair, risks)}
    open_pairs = set(possible)
    meshes: list[Choice] = []
    for _ in range(MESHES):
        mesh = _next(risks, open_pairs, meshes)
        open_pairs -= set(_pairs_of(mesh, risks))
        meshes.append(mesh)
    changes = tuple(_changes(meshes, risks))
    return Plan(tuple(meshes), changes, left_out, len(possible), len(possible) - len(open_pairs))


def is_allowed(choice: Choice, risks: Sequence[Risk]) -> bool:
    """Return whether a mesh file may have these options together."""
    chosen = [risk for risk in risks if risk.name in choice]
    return all((not risk.after or risk.after in choice) and not choice.intersection(risk.excludes) for risk in chosen)


def document(choice: Choice, namespace: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mesh file with these options."""
    values = {
        "bucket": f"asya-{namespace}-smoke-data",
        "jobs": str(PROJECT / "spark_jobs"),
        **given,
    }
    found: dict[str, Any] = {"namespace": namespace, "code": str(PROJECT / "functions" / "handlers"), **deepcopy(BASE)}
    for risk in RISKS:
        if risk.name in choice:
            _merge(found, _filled(risk.document, values))
    return found


def _all_pairs(risks: Sequence[Risk]) -> Iterator[tuple[tuple[str, bool], tuple[str, bool]]]:
    for first, second in combinations([risk.name for risk in risks], 2):
        for is_first in (True, False):
            for is_second in (True, False):
                yield (first, is_first), (second, is_second)


def _pairs_of(mesh: Choice, risks: Sequence[Risk]) -> Iterator[tuple[tuple[str, bool], tuple[str, bool]]]:
    for first, second in combinations([risk.name for risk in risks], 2):
        yield (first, first in mesh), (second, second in mesh)


def _is_possible(pair: tuple[tuple[str, bool], tuple[str, bool]], risks: Sequence[Risk]) -> bool:
    """Return whether a mesh may have this pair: what the chosen options need is added."""
    by_name = {risk.name: risk for risk in risks}
    wanted = {name for name, is_on in pair if is_on}
    wanted |= {by_name[name].after for name in wanted if by_name[name].after}
    refused = {name for name, is_on in pair if not is_on}
    return not wanted & refused and wanted <= by_name.keys() and is_allowed(frozenset(wanted), risks)


def _next(risks: Sequence[Risk], open_pairs: set[Any], before: Sequence[Choice]) -> Choice:
    """Decide option by option what meets more of the open pairs, else what fewer meshes have.

    The option with more open pairs comes first.
    """
    weight = {risk.name: sum(any(name == risk.name for name, _ in pair) for pair in open_pairs) for risk in risks}
    decided: dict[str, bool] = {}
    for risk in sorted(risks, key=lambda each: -weight[each.name]):
        if risk.name in decided:
            continue
        gains = {value: _gain(decided, risk.name, value, open_pairs) for value in (True, False)}
        is_rare = 2 * sum(risk.name in mesh for mesh in before) <= len(before)
        is_on = (gains[True], is_rare) > (gains[False], not is_rare) and _fits(risk, decided, risks)
        decided[risk.name] = is_on
        if is_on and risk.after:
            decided[risk.after] = True
    return frozenset(name for name, is_on in decided.items() if is_on)


def _fits(risk: Risk, decided: Mapping[str, bool], risks: Sequence[Risk]) -> bool:
    on = {name for name, is_on in decided.items() if is_on} | {risk.name}
    if risk.after:
        if decided.get(risk.after) is False or all(each.name != risk.after for each in risks):
            return False
        on.add(risk.after)
    return is_allowed(frozenset(on), [each for each in risks if each.name in on])


def _gain(decided: Mapping[str, bool], name: str, value: bool, open_pairs: set[Any]) -> int:
    return sum(
        any(side in open_pairs for side in (((name, value), (other, is_on)), ((other, is_on), (name, value))))
        for other, is_on in decided.items()
    )


def _changes(meshes: Sequence[Choice], risks: Sequence[Risk]) -> Iterator[Choice]:
    """Take one option out of each mesh, and put another one in: each time others, the riskiest first."""
    removed: set[str] = set()
    added: set[str] = set()
    for mesh in meshes:
        changed = mesh
        for risk in sorted(risks, key=lambda each: each.name in removed):
            smaller = changed - {risk.name}
            if risk.name in changed and is_allowed(smaller, risks):
                removed.add(risk.name)
                changed = smaller
                break
        for risk in sorted(risks, key=lambda each: each.name in added):
            larger = changed | {risk.name}
            if risk.name not in mesh and is_allowed(larger, risks):
                added.add(risk.name)
                changed = larger
                break
        yield changed


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _filled(each, values) for key, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, values) for each in value]
    if isinstance(value, str) and value[:1] == "{" and value[1:-1] in values:
        return values[value[1:-1]]
    return value.replace("{bucket}", str(values["bucket"])) if isinstance(value, str) else value


def _merge(target: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = deepcopy(value)


def not_set() -> set[str]:
    """Return the options that no mesh sets, without those below others."""
    names = settings() - set_in(BASE).union(*(set_in(risk.document) for risk in RISKS)) - UNREACHABLE.keys()
    return {name for name in names if not any(name.startswith(f"{other}.") for other in names)}


def _told(found: Plan) -> Iterator[str]:
    by_name = {risk.name: risk for risk in RISKS}
    for number, (mesh, changed) in enumerate(zip(found.meshes, found.changes, strict=True), start=1):
        yield f"mesh {number}: {', '.join(name for name in by_name if name in mesh) or 'none of the options'}"
        without, more = ", ".join(sorted(mesh - changed)), ", ".join(sorted(changed - mesh))
        yield f"  then without {without or 'nothing'}, with {more or 'nothing'} besides"
    yield f"{found.covered} of {found.pairs} pairs of options, on and off, are in a mesh"
    yield "success shows:"
    deployed = frozenset().union(*found.meshes, *found.changes)
    yield from (f"  {name}: {risk.shows}" for name, risk in by_name.items() if name in deployed)
    yield "not shown, because the account's values are not given:"
    yield from (
        f"  {name}: needs {' and '.join(f'--set {each}=…' for each in needs)}" for name, needs in found.left_out.items()
    )
    yield "not shown, because the script has nothing for them:"
    yield from (f"  {name}: {reason}" for name, reason in UNREACHABLE.items())
    yield f"not set in any mesh: {', '.join(sorted(not_set()))}"
    yield "not shown: job runs and handlers of users, what mails and callers do, other pairs, other regions and accounts"


def main(arguments: Sequence[str]) -> None:
    """Write `1.yaml`, `1-changed.yaml` and so on, and print the plan."""
    parser = argparse.ArgumentParser(prog="python -m tests.real_account.meshes")
    parser.add_argument("folder", type=Path)
    parser.add_argument("values", nargs="*", metavar="NAME=VALUE", help="what the account has; lists with commas")
    options = parser.parse_args(arguments)
    known = sorted({name for risk in RISKS for name in risk.account})
    given: dict[str, Any] = {}
    for text in options.values:
        name, _, value = text.partition("=")
        if name not in known or not value:
            parser.error(f"{text!r} is no value of the account; give {', '.join(f'{each}=…' for each in known)}")
        given[name] = value.split(",") if name in ("subnets", "security_groups") else value
    found = plan(given)
    options.folder.mkdir(parents=True, exist_ok=True)
    for number, choices in enumerate(zip(found.meshes, found.changes, strict=True), start=1):
        for suffix, choice in zip(("", "-changed"), choices, strict=True):
            text = yaml.safe_dump(document(choice, f"all{number}", given), sort_keys=False)
            (options.folder / f"{number}{suffix}.yaml").write_text(text)
    print("\n".join(_told(found)))


if __name__ == "__main__":
    main(sys.argv[1:])
