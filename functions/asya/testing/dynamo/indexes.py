"""The tables of a mesh with their indexes, as the deployment creates them."""

from asya import registry, stores
from asya.protocol import names
from asya.protocol.mesh_table import MeshTable
from asya.testing.dynamo.queries import Index, Table


def new_tables(mesh: MeshTable) -> dict[str, Table]:
    """The empty tables of a mesh, by their names in AWS."""
    declared = registry.of(mesh).tables.values()
    return {names.table_name(mesh.namespace, each.name): _new(each) for each in declared}


def new_table(name: str) -> Table:
    """One empty table that every mesh has."""
    return _new(registry.PRODUCT.tables[name])


def _new(table: stores.Table) -> Table:
    return Table({index.name: Index(index.partition, index.sort, index.included) for index in table.indexes})
