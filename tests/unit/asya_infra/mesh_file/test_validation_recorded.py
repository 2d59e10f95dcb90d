"""What the loader says of wrong values at every key, compared with the record of `wrong_values`."""

import pytest

from tests.unit.asya_infra.mesh_file.wrong_values import RECORDED, record, sections

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.slow
def test_wrong_values_at_every_key_give_the_recorded_messages() -> None:
    assert record() == RECORDED.read_text(), (
        "if the change is intended: python -m tests.unit.asya_infra.mesh_file.wrong_values"
    )


def test_each_section_is_recorded() -> None:
    recorded = RECORDED.read_text()
    missing = [
        place for place, _ in sections() if f"# {'.'.join(map(str, place)) or 'the file'}: every" not in recorded
    ]
    assert missing == []
