"""The tables of a mesh with their indexes, as the deployment creates them."""

from asya.testing.dynamo.queries import Index, Table
from asya_infra.table_settings import TABLES

KINDS = tuple(TABLES)
# The indexes of the tasks table: partition key, sort key, and further projected attributes.
TASK_INDEXES = {index.name: (index.partition, index.sort, index.included) for index in TABLES["tasks"]}


def new_table(kind: str) -> Table:
    """An empty table of one of `KINDS`."""
    return Table({index.name: Index(index.partition, index.sort, index.included) for index in TABLES[kind]})
