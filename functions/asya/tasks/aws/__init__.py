"""The tasks table in DynamoDB: records, hops, partials, indexes and lists."""
