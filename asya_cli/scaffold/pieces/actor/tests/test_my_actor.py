from asya.testing import Mesh


def test_my_actor_measures_the_text(asya_mesh: Mesh) -> None:
    run = asya_mesh.send("my-actor", {"id": "7", "text": "hello"})
    assert run.result == {"id": "7", "text": "hello", "length": 5}
