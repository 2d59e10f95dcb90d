"""Checks the customer managed key against the place of the deployment."""

from collections.abc import Iterator

from asya_infra.mesh_file.account_model import region_of_key
from asya_infra.mesh_file.checks.context import Context, Finding


def check_storage(context: Context) -> Iterator[Finding]:
    """Check that the key is in the region of the mesh. Services use only keys of their own region."""
    key, region = context.mesh.storage.kms_key, context.mesh.region
    if key is not None and region is not None and region_of_key(key) != region:
        yield (
            ("storage", "kms_key"),
            f"is in {region_of_key(key)}, but the mesh is deployed to {region}; use a key of that region, or a replica "
            "of a multi-Region key there",
        )
