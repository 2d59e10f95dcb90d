import json
from pathlib import Path

import pytest
from asya.testing import Mesh

SAMPLE = json.loads((Path(__file__).parents[1] / "samples" / "refund.json").read_text())


@pytest.mark.parametrize(("approved", "paid"), [(True, 25.0), (False, 0.0)])
def test_a_refund_is_paid_after_the_approval_only(asya_mesh: Mesh, approved: bool, paid: float) -> None:
    run = asya_mesh.call("refund", SAMPLE)
    assert (run.status, run.question.prompt) == ("paused", "Pay 25.0 for order 7?")
    asya_mesh.travel(days=2)
    asya_mesh.answer(run, approved=approved, approved_by="Ada")
    assert run.result == {"order": "7", "paid": paid, "approved_by": "Ada"}


def test_nobody_is_asked_about_a_wrong_amount(asya_mesh: Mesh) -> None:
    run = asya_mesh.call("refund", {"order": "7", "amount": -1})
    assert run.status == "failed"
    assert run.errors[0].message == "the amount of order 7 is -1.0"
