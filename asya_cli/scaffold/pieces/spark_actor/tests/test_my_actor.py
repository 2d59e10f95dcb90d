from asya.testing import Mesh


def test_my_actor_adds_up_the_numbers(asya_mesh: Mesh) -> None:
    run = asya_mesh.send("my-actor", {"id": "7", "numbers": [1, 2.5]})
    assert run.result == {"id": "7", "numbers": [1.0, 2.5], "total": 3.5}
