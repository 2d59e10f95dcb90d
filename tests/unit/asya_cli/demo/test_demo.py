"""The demo's pure parts: its data, its tables, its stopwatch."""

import gzip
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from asya.protocol.pause import PauseField, TaskPause
from asya_cli.demo.approval import answers, passed, with_approval
from asya_cli.demo.cloud import MESH_FILE, actor_kinds
from asya_cli.demo.dataset import dataset_files
from asya_cli.demo.run import EVENT
from asya_cli.demo.stopwatch import Stopwatch
from asya_cli.demo.summary import minutes, summary
from asya_cli.send import as_envelope


def printed(*parts: object) -> str:
    output = StringIO()
    for part in parts:
        Console(file=output, width=160).print(part)
    return output.getvalue()


def test_the_data_are_the_five_tables_of_2013() -> None:
    files = dict(dataset_files())
    assert sorted(files) == [
        f"raw/{table}.csv.gz" for table in ("airlines", "airports", "flights", "planes", "weather")
    ]
    assert gzip.decompress(files["raw/flights.csv.gz"]).count(b"\n") == 336_776 + 1


def test_with_approval_a_pause_stands_between_the_statistics_and_the_report() -> None:
    envelope = with_approval(as_envelope(EVENT.read_bytes(), str(EVENT), "fresh"))
    assert envelope.route.next[-3:] == ("x-fan-in", "approve-report", "publish-report")
    assert passed(envelope.route.next)[-3:] == ("approve-report", "x-resume", "publish-report")
    assert actor_kinds(MESH_FILE)["approve-report"] == "Lambda"


def test_without_a_terminal_the_defaults_of_the_mesh_file_apply() -> None:
    pause = TaskPause(
        prompt="Publish?",
        fields=(PauseField(name="approved_by", type="string", prompt="Your name", default="anonymous"),),
        since="2025-11-18T14:30:00.000000Z",
    )
    shown = StringIO()
    assert answers(pause, Console(file=shown)) == b"{}"
    assert "Publish?" in shown.getvalue()
    assert "Your name (anonymous): no terminal, so the default applies" in shown.getvalue()


def test_the_event_names_existing_files_and_actors() -> None:
    envelope = as_envelope(EVENT.read_bytes(), str(EVENT), "fresh")
    kinds = actor_kinds(MESH_FILE)
    assert [kinds[actor] for actor in (envelope.route.curr, *envelope.route.next)] == [
        "Lambda",
        "Spark",
        "Lambda",
        "Lambda",
        "Lambda",
    ]
    payload = bytes(envelope.payload).decode()
    assert all(reference in payload for reference, _ in dataset_files())


def test_the_summary_shows_the_worst_first() -> None:
    def row(delay: float | None, **keys: object) -> dict[str, object]:
        return {**keys, "flights": 1200, "mean_arr_delay": delay}

    text = printed(
        *summary(
            {
                "rows_in": 336776,
                "cancelled": 8255,
                "statistics": {
                    "by_airport": [row(15.1, airport="LGA", name="La Guardia"), row(5.0, airport="XXX", name=None)],
                    "by_carrier": [
                        row(None, carrier="ZZ", name=None),
                        row(1.25, carrier="AA", name="Good Air"),
                        row(9.5, carrier="BB", name="Late Air"),
                    ],
                    "worst_routes": [row(24.04, origin="EWR", dest="CAE")],
                    "weather": [row(-3.0, weather="dry")],
                },
            }
        )
    )
    assert "336,776 flights, 8,255 canceled (2.5%)" in text
    assert text.index("Late Air") < text.index("Good Air")
    assert all(words in text for words in ("EWR", "CAE", "24.0 min", "-3.0 min", "1,200", "La Guardia", "XXX"))
    assert minutes(None) == "–"


def test_the_stopwatch_adds_up_steps_but_not_their_parts() -> None:
    watch = Stopwatch()
    with watch.lap("first"):
        pass
    watch.note("part of it", 100.0)
    with pytest.raises(ValueError, match="also measured"), watch.lap("second"):
        raise ValueError("also measured")
    assert [lap.name for lap in watch.laps] == ["first", "part of it", "second"]
    assert watch.total < 10
    assert all(word in printed(watch.table()) for word in ("first", "part of it", "total"))


def test_the_demos_files_exist() -> None:
    assert EVENT.is_file()
    assert Path(MESH_FILE).is_file()
