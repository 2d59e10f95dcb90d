import my_actor
from asya.testing import Mesh, payload_of


def test_my_actor_measures_the_text(asya_mesh: Mesh) -> None:
    run = asya_mesh.call("my-actor", payload_of(my_actor.MyActor, text="hello"))
    assert run.result["length"] == 5
