"""The addresses of a mesh in the account of a local cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING

from asya_infra.addresses import Addresses
from asya_local.account.keys import ACCOUNT_ID, REGION

if TYPE_CHECKING:
    from asya_infra.mesh_file import LoadedMesh


def local_addresses(loaded: LoadedMesh) -> Addresses:
    """Return the ARNs and URLs of a mesh on a local cloud, which ignores the account and the region of the mesh file."""
    storage = loaded.mesh.storage
    return Addresses(
        namespace=loaded.namespace,
        partition="aws",
        region=REGION,
        account=ACCOUNT_ID,
        url_suffix="amazonaws.com",
        data_bucket=storage.data_bucket,
        results_bucket=storage.results_bucket,
    )
