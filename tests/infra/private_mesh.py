"""The mesh with light and heavy actors, with a customer managed key and in a VPC."""

from pathlib import Path

SOURCE = Path(__file__).parent / "mesh"
KEY = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
SUBNETS = ["subnet-0aaaaaaaaaaaaaaaa", "subnet-0bbbbbbbbbbbbbbbb"]
SPARK_SUBNETS = ["subnet-0cccccccccccccccc", "subnet-0dddddddddddddddd"]
GROUP = "sg-0123456789abcdef0"
OPTIONS = f"""
vpc: {{subnets: {SUBNETS}, security_groups: {GROUP}}}
spark: {{application: {{vpc: {{subnets: {SPARK_SUBNETS}, security_groups: {GROUP}}}}}}}
"""


def write_private_mesh(folder: Path) -> Path:
    """Write the mesh file to a folder; return its path. Its code is that of the mesh without the options."""
    text = (SOURCE / "mesh.yaml").read_text()
    for old, new in (
        ("code: handlers", f"code: {SOURCE / 'handlers'}"),
        ("jobs: jobs", f"jobs: {SOURCE / 'jobs'}"),
        ("storage: {", f"storage: {{kms_key: '{KEY}', "),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    file = folder / "mesh.yaml"
    file.write_text(text + OPTIONS)
    return file


def write_private_light_mesh(folder: Path) -> Path:
    """Write a mesh of one light actor with the same options to a folder; return its path."""
    file = folder / "mesh.yaml"
    actors = "{score: {handler: orders.score}}"
    text = f"namespace: light\ncode: {SOURCE / 'handlers'}\nactors: {actors}\nstorage: {{kms_key: '{KEY}'}}\n"
    file.write_text(text + OPTIONS)
    return file
