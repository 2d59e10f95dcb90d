"""DynamoDB in memory, as strict as AWS."""
