"""The demo's summary."""

from io import StringIO

from rich.console import Console

from asya_cli.demo.report import minutes, summary


def printed(*parts: object) -> str:
    output = StringIO()
    for part in parts:
        Console(file=output, width=160).print(part)
    return output.getvalue()


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
