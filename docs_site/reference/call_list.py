"""Writes the list of calls into docs/reference/gateway.md, from their declarations: `make generated`."""

from pathlib import Path

from asya.api_call import ApiCall
from asya.gateway.call_table import CALLS
from docs_site.reference.tables import code, table, with_written

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "gateway.md"


def with_calls(page: str) -> str:
    """Return the page with the calls as they are declared."""
    return with_written(page, table(("call", "does"), ((code(call.route), _text(call)) for call in CALLS)))


def _text(call: ApiCall) -> str:
    access = "No signature." if call.is_public else ""
    return " ".join(f"{part.rstrip('.')}." for part in (call.summary, call.details, access) if part)


if __name__ == "__main__":
    PAGE.write_text(with_calls(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
