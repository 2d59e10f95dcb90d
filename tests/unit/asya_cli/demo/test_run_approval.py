"""The demo's approval."""

from io import StringIO

from rich.console import Console

from asya.protocol.pause import PauseField, TaskPause
from asya_cli.demo.run import EVENT, MESH_FILE, actor_kinds, answers, full_route, with_approval
from asya_cli.sending.send import parse_envelope


def test_with_approval_a_pause_stands_between_the_statistics_and_the_report() -> None:
    envelope = with_approval(parse_envelope(EVENT.read_bytes(), str(EVENT), "fresh"))
    assert envelope.route.next[-3:] == ("x-fan-in", "approve-report", "publish-report")
    assert full_route(envelope.route.next)[-3:] == ("approve-report", "x-resume", "publish-report")
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
