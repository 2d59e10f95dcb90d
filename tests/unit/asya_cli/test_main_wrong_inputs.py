"""Wrong inputs: each is answered in two lines that say what is wrong and what to type, with a documented exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from asya_cli.errors import ExitCode
from tests.doubles.command_line import assert_two_lines, asya
from tests.doubles.operated_mesh import operated_mesh

USAGE = 2
ORDERS = '{"orders": [{"country": "NO", "total": 1}, {"country": "SE", "total": 1}]}'
FAILED, NOT_FOUND = ExitCode.COMMAND_FAILED, ExitCode.NOT_FOUND


@dataclass(frozen=True)
class Wrong:
    """A wrong input: `DONE`, `FAILED` and so on in it stand for ids of tasks.

    Attributes:
        line: What is typed after `asya`, split at spaces.
        code: The exit code.
        problem, advice: Parts of the first line, and of the last one.
        text: Standard input.
    """

    line: str
    code: int
    problem: str
    advice: str
    text: str = "{}"
    more: tuple[str, ...] = field(default=())


STATUS_OF = "`asya status {} --state .asya` shows it"
WRONG = [
    # Ids
    Wrong("status nope", NOT_FOUND, "there is no task 'nope'", "`asya list --state .asya` shows the newest tasks"),
    Wrong("status nope --json", NOT_FOUND, "there is no task 'nope'", "`asya list"),
    Wrong("result nope", NOT_FOUND, "there is no task 'nope'", "`asya list"),
    Wrong("cancel nope", NOT_FOUND, "there is no task 'nope'", "`asya list"),
    Wrong("replay nope", NOT_FOUND, "there is no task 'nope'", "`asya list"),
    Wrong("resume nope", NOT_FOUND, "there is no task 'nope'", "`asya list"),
    Wrong("logs nope", NOT_FOUND, "no task and no actor 'nope'", "Give the id of an envelope, or the name of an actor"),
    Wrong("dlq show nope", NOT_FOUND, "no dead letter 'nope'", "`asya dlq list --state .asya`"),
    Wrong("job show nope", NOT_FOUND, "'nope' is not a job run of the mesh 'shop'", "`asya job list --state .asya`"),
    Wrong("job logs asya.shop.clean.0000000001", NOT_FOUND, "there is no job run", "`asya job list --state .asya`"),
    Wrong("dlq list nope", NOT_FOUND, "no dead-letter queue for an actor 'nope'", "`asya dlq list --state .asya`"),
    Wrong("dlq list x-ends", FAILED, "reports, which are no envelopes", "`asya dlq reports replay --state .asya`"),
    Wrong("backfill show nope", NOT_FOUND, "there is no backfill 'nope'", "`asya backfill list --state .asya`"),
    Wrong("send - --actor check --id ", FAILED, "--id is empty", "--new-id"),
    # A variable of the shell that is not set would select all
    Wrong("replay --failed --since ", USAGE, "'--since': it is empty", "`asya replay --help` shows"),
    Wrong("cancel --running --actor ", USAGE, "'--actor': it is empty", "`asya cancel --help` shows"),
    Wrong("dlq redrive check --id ", USAGE, "'--id': it is empty", "`asya dlq redrive --help` shows"),
    Wrong("dlq redrive ", USAGE, "'actor': it is empty", "`asya dlq redrive --help` shows"),
    # Tasks in another state
    Wrong("result RUNNING", NOT_FOUND, "its task is running", "--follow --state .asya` shows it"),
    Wrong("replay RUNNING", FAILED, "has not failed: its status is running", STATUS_OF.format("RUNNING")),
    Wrong("replay DONE", FAILED, "has not failed: its status is succeeded", "`asya result DONE --state .asya` prints"),
    Wrong("resume DONE", FAILED, "is not paused; its status is succeeded", STATUS_OF.format("DONE")),
    Wrong("resume RUNNING", FAILED, "is not paused; its status is running", STATUS_OF.format("RUNNING")),
    Wrong("replay FAILED --from 9", FAILED, "hop 9 of 'FAILED' is not stored", "`asya replay FAILED --state .asya` runs"),
    Wrong("replay FAILED --failed-only", FAILED, "without --failed-only", "`asya replay FAILED --state .asya` runs"),
    Wrong("replay SLICE", FAILED, "slice", "`asya replay ORIGIN --failed-only --state .asya` runs it again with its set"),
    # Answers to a pause
    Wrong("resume PAUSED --input", FAILED, 'approved should be true or false, not "x"',
          "asya resume PAUSED --input '{\"approved\":true}' --pause", more=('{"approved": "x"}',)),
    Wrong("resume PAUSED --input", FAILED, "aproved is not asked for; the fields are approved, carrier",
          "asya resume PAUSED --input", more=('{"aproved": true}',)),
    Wrong("resume PAUSED", FAILED, "approved is missing", "asya resume PAUSED --input '{\"approved\":true}'"),
    Wrong("resume PAUSED --input {yes}", FAILED, "--input is not valid JSON: expecting property name", "Example: --input '{"),
    Wrong("resume PAUSED --input [1]", FAILED, "--input is not a JSON object", "Example: --input '{"),
    # Names
    Wrong("send - --actor bil", NOT_FOUND, "has no actor 'bil'; did you mean 'bill'?", "Its actors are approve, bill"),
    Wrong("list --actor bil", NOT_FOUND, "has no actor 'bil'; did you mean 'bill'?", "Its actors are approve, bill"),
    Wrong("replay --failed --actor bil", NOT_FOUND, "did you mean 'bill'?", "Its actors are approve, bill"),
    Wrong("failures --actor x-sunk", NOT_FOUND, "did you mean 'x-sink'?", "Its actors are approve, bill"),
    Wrong("dlq redrive bil", NOT_FOUND, "actor 'bil'; did you mean 'bill'?", "`asya dlq list --state .asya` shows"),
    Wrong("job list cleen", NOT_FOUND, "has no actor 'cleen'; did you mean 'clean'?", "Its actors are approve, bill"),
    Wrong("job drain cleen", NOT_FOUND, "has no actor 'cleen'; did you mean 'clean'?", "Its actors are approve, bill"),
    Wrong("run chek", NOT_FOUND, "'chek'; did you mean 'check'?", "Its actors with code are check, bill"),
    Wrong("call odrer", NOT_FOUND, "has no tool 'odrer'; did you mean 'order'?", "are order, ship, night"),
    Wrong("stauts x", USAGE, "no such command 'stauts'. Did you mean 'status'?", "`asya --help` shows"),
    Wrong("status x --folow", USAGE, "no such option: --folow", "`asya status --help` shows"),
    # Payloads
    Wrong("call order countryNO", FAILED, "'countryNO' is neither KEY=VALUE nor a payload", "Give @FILE"),
    Wrong("call order total=3", FAILED, '"country" is a required property', "tools.order.input_schema"),
    Wrong("call order country=3", FAILED, '3 is not of type "string"', "tools.order.input_schema"),
    Wrong("call order @none.json", NOT_FOUND, "cannot read none.json: No such file", "Give the path of a file that exists"),
    Wrong("call order", FAILED, "at line 2, column 7", "Give @FILE", more=('{"country":\n "NO",}',)),
    Wrong("send -", FAILED, "standard input is not valid JSON: expecting value at line 1, column 8", "--actor",
          text='{"id": }'),
    Wrong("send -", FAILED, "standard input is not an envelope", "name the actor with --actor"),
    Wrong("send none.json", NOT_FOUND, "cannot read none.json: No such file", "Give the path of a file that exists"),
    Wrong("send - --next bill", FAILED, "--next needs --actor", "in its route"),
    Wrong("data put none.csv raw/a.csv", NOT_FOUND, "cannot read none.csv", "Give the path of a file that exists"),
    Wrong("data get none.csv", NOT_FOUND, "there is no s3://", "`asya data ls --state .asya` lists the files"),
    Wrong("data put none.csv ../a", FAILED, "'../a' is not a reference", "such as 'raw/flights.csv.gz'"),
    Wrong("result DONE -o no/such/folder", FAILED, "cannot write no/such/folder", "Give a file in a folder that exists"),
    # Options
    Wrong("list --since yesterday", FAILED, "--since yesterday is neither an age nor a time", "Give an age such as 30m"),
    Wrong("dlq redrive --since soon", FAILED, "--since soon is neither an age nor a time", "Give an age such as 30m"),
    Wrong("list --status done", USAGE, "'done' is not one of 'pending', 'running'", "`asya list --help` shows"),
    Wrong("replay", FAILED, "replay takes an ID, or --failed", "`asya replay --failed --dry-run`"),
    Wrong("cancel x --running", FAILED, "cancel takes an ID, or --running", "`asya cancel --running --dry-run`"),
    Wrong("job list --before 3", FAILED, "--before needs an actor", "asya job list ACTOR --before N"),
    # Mesh files
    Wrong("validate --mesh none.yaml", NOT_FOUND, "there is no mesh file none.yaml", "Name it with --mesh"),
    Wrong("dev --mesh none.yaml", NOT_FOUND, "there is no mesh file none.yaml", "Name it with --mesh"),
    Wrong("local up --mesh none.yaml", NOT_FOUND, "there is no mesh file none.yaml", "Name it with --mesh"),
    Wrong("new actor a --mesh none.yaml", NOT_FOUND, "there is no mesh file none.yaml", "name it with --mesh"),
    Wrong("doctor --mesh none.yaml", NOT_FOUND, "there is no mesh file none.yaml", "Name it with --mesh"),
    Wrong("deploy --mesh none.yaml", NOT_FOUND, "there is no mesh file none.yaml", "Name it with --mesh"),
    Wrong("graph --stage live", FAILED, "there is no stage 'live'", "declared: prod"),
    Wrong("graph --format png", USAGE, "'png' is not one of 'mermaid', 'svg'", "`asya graph --help` shows"),
    Wrong("graph -o mesh.png", FAILED, "the picture of a mesh is SVG, and not .png", "asya graph -o mesh.svg"),
]  # fmt: skip


@pytest.fixture(scope="module")
def ids(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The mesh, and the ids of tasks in each state."""
    folder = tmp_path_factory.mktemp("shop")
    with operated_mesh(folder), pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)

        def start(*arguments: str, text: str = "{}") -> str:
            name = asya(*arguments, text=text).stdout.strip()
            asya("status", name, "--follow")
            return name

        asya("send", "-", "--actor", "fetch", "--id", "RUNNING", text="{}")
        origin = start("call", "night", ORDERS)
        children = [json.loads(line) for line in asya("list", "--parent", origin, "--json").stdout.splitlines()]
        yield {
            "RUNNING": "RUNNING",
            "DONE": start("call", "order", "country=NO", "total=1"),
            "FAILED": start("call", "order", "country=SE", "total=1"),
            "PAUSED": start("call", "ship", "country=NO", "total=1"),
            "ORIGIN": origin,
            "SLICE": next(child["id"] for child in children if child["status"] == "failed"),
        }


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: " ".join((wrong.line, *wrong.more)))
def test_a_wrong_input_is_answered_in_two_lines(ids: dict[str, str], wrong: Wrong) -> None:
    def filled(text: str) -> str:
        for word, name in ids.items():
            text = text.replace(word, name)
        return text

    outcome = asya(*filled(wrong.line).split(" "), *wrong.more, text=wrong.text)
    assert_two_lines(outcome, wrong.code, filled(wrong.problem), filled(wrong.advice))


def test_there_are_thirty_wrong_inputs_and_more() -> None:
    assert len({(wrong.line, wrong.more, wrong.text) for wrong in WRONG}) >= 30
