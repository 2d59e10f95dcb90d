"""Writes the sizes and the costs of the example into docs/how-to/going-to-production.md, by the cost model: `make generated`."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec.structs import astuple

from asya.protocol import names
from asya_cli.mesh_file.loading import load_with_types
from asya_cli.synthesis import synthesize
from asya_infra.assembly import Template, read_assembly
from asya_infra.costs import model, prices
from asya_infra.costs.counts import FULL, LOADS, MEMORY_GB, SINGLE, SWEEP_SECONDS, Load, counts
from asya_infra.costs.view import BARE, HOP, SILENT, TASK, size_of
from docs_site.reference.tables import table, with_written

_FILES = Path(__file__).parents[2]
PAGE = _FILES / "docs" / "how-to" / "going-to-production.md"
LIGHT = "light"
"""The actor of a mesh of one light actor."""
_LIGHT_FILES = {
    "mesh.yaml": f"namespace: one\ncode: .\nactors:\n  {LIGHT}: {{handler: handlers.keep}}\n",
    "handlers.py": "def keep(payload):\n    return payload\n",
}
Templates = Mapping[str, Template]


def with_costs(page: str, example: Templates, light: Templates) -> str:
    """Return the page with the costs as they are computed.

    Args:
        page: the text of the page.
        example: the templates of the example.
        light: the templates of a mesh of one light actor.
    """
    return with_written(page, _costs(example, light))


def dollars_of(what: str, load: Load) -> float:
    """Return the dollars of a million hops or tasks."""
    return model.total(model.calls(counts()["loads"][load.name][what], load))


def _costs(example: Templates, light: Templates) -> Iterator[str]:
    yield "### Size"
    yield ""
    sizes = (
        ("one light actor", size_of(light.values())),
        ("the example: six actors, two of them heavy", size_of(example.values())),
    )
    header = ("mesh", "stacks", "resources", "functions", "queues, with dead-letter queues")
    yield from table(header, [(mesh, *map(str, astuple(size))) for mesh, size in sizes])
    yield "### Prices"
    yield ""
    yield f"List prices of {prices.REGION}, {prices.DATE}:"
    yield ""
    yield from table(("service", "price"), [(each.service, each.text) for each in prices.ALL])
    yield "### Idle"
    yield ""
    lines = model.idle(example)
    one, actor = model.idle(light), model.idle_actor(light, LIGHT)
    yield "The example mesh per month, with no envelope at all:"
    yield ""
    rows = [
        (each.part, each.calculation, f"{each.dollars:.2f}") for each in sorted(lines, key=lambda each: -each.dollars)
    ]
    yield from table(("part", "calculation", "$"), [*rows, ("**together**", "", f"**{model.total(lines):.2f}**")])
    yield f"A mesh of one light actor costs ${model.total(one):.2f}, and each further one ${model.total(actor):.2f}."
    yield ""
    yield "### Per million hops and tasks"
    yield ""
    yield from _calls()
    durations = [
        f"{FULL.seconds(name) * 1000:.0f} ms for ten envelopes and {SINGLE.seconds(name) * 1000:.0f} ms for one"
        for name in ("actor", names.SINK)
    ]
    yield f"A function has {MEMORY_GB * 1024:.0f} MB. The durations are assumed: an actor takes {durations[0]},"
    yield f"`x-reports` and `x-sink` take {durations[1]}, and a sweep {SWEEP_SECONDS:.1f} s."
    shared = 1 - counts()["loads"][FULL.name][HOP]["write units"]
    yield "Each function works on one batch at a time. Hops of a task whose reports lie in one batch of `x-reports` share a write."
    yield f"With many batches at a time a hop costs up to a write, which is ${shared * prices.WRITE_UNIT.dollars * 1e6:.2f} more."
    yield f"A handler that takes a second adds ${MEMORY_GB * 1e6 * prices.LAMBDA_SECOND.dollars:.2f} per million calls."
    yield ""
    full, single = (dollars_of(TASK, load) + 3 * dollars_of(HOP, load) for load in LOADS)
    yield f"A million tasks over three light actors cost **${full:.2f}** under load, and **${single:.2f}** one by one."


def _calls() -> Iterator[str]:
    titles = {
        HOP: "one light hop",
        TASK: "one task, from its call of the gateway to its stored result",
    }
    for what, title in titles.items():
        by_load = [
            {line.part: line for line in model.calls(counts()["loads"][load.name][what], load)} for load in LOADS
        ]
        rows = [
            (part, *(cell for lines in by_load for cell in (lines[part].calculation, f"{lines[part].dollars:.2f}")))
            for part in by_load[0]
        ]
        rows.append(("**together**", *(cell for load in LOADS for cell in ("", f"**{dollars_of(what, load):.2f}**"))))
        less, without = (
            (SILENT, "without reports") if what == HOP else (BARE, "without an object, by `sink.large_only`")
        )
        rows.append((without, *(cell for load in LOADS for cell in ("", f"{dollars_of(less, load):.2f}"))))
        yield from table((title, *(cell for load in LOADS for cell in (load.name, "$"))), rows)


def write_light_mesh(folder: Path) -> Path:
    """Write a mesh of one light actor, and its code alone; return the path of the mesh file."""
    folder.mkdir()
    for name, text in _LIGHT_FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "mesh.yaml"


def synthesized(mesh: Path) -> Templates:
    """Return the templates of a mesh."""
    return read_assembly(synthesize(load_with_types(mesh, ""), "").folder).templates


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory(prefix="asya-costs-") as name:
        example = synthesized(_FILES / "mesh.yaml")
        one = synthesized(write_light_mesh(Path(name) / "code"))
        text = with_costs(PAGE.read_text(encoding="utf-8"), example, one)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
