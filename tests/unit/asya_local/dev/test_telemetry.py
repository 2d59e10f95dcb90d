"""The log of functions in `asya dev`."""

from asya_local.dev.telemetry import DevTelemetry


def test_entries_name_their_fields_and_their_exception() -> None:
    entries: list[tuple[str, str]] = []
    telemetry = DevTelemetry("check", lambda level, text: entries.append((level, text)))
    telemetry.log.info("job run", state="RUNNING")
    telemetry.log.warning("late", exc_info=ValueError("no"))
    try:
        {}["total"]
    except KeyError:
        telemetry.log.exception("it failed")
    telemetry.count("Processed")
    telemetry.measure("HandlerDuration", 1.0, "Milliseconds")
    telemetry.flush()
    assert entries[0] == ("info", "check: job run (state=RUNNING)")
    assert entries[1] == ("warning", "check: late\nValueError: no")
    assert entries[2][1].startswith("check: it failed\nTraceback")
    assert entries[2][1].endswith("KeyError: 'total'")


def test_texts_of_strangers_make_no_line() -> None:
    entries: list[str] = []
    telemetry = DevTelemetry("check", lambda _, text: entries.append(text))
    telemetry.log.warning("order\n7 is\rlate", envelope_id="e\n10:20:01 e failed at check")
    assert entries == [r"check: order\n7 is\x0dlate (envelope_id=e\n10:20:01 e failed at check)"]
