"""The demo's event and its mesh."""

from pathlib import Path

import pytest

from asya_cli.demo.run import EVENT, MESH_FILE, actor_kinds, dataset_files
from asya_cli.sending.send import parse_envelope


@pytest.mark.slow
def test_the_event_names_existing_files_and_actors() -> None:
    envelope = parse_envelope(EVENT.read_bytes(), str(EVENT), "fresh")
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


def test_the_demos_files_exist() -> None:
    assert EVENT.is_file()
    assert Path(MESH_FILE).is_file()
