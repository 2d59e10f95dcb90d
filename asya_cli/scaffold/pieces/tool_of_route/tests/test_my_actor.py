from asya.testing import Mesh


def test_my_actor_starts_its_route(asya_mesh: Mesh) -> None:
    run = asya_mesh.call("my-actor", {})
    # The payload above is empty. Write one here that fits, and what the tool gives: `assert run.result == …`.
    assert run.hops[0].actor == "first-actor"
