"""The tasks table in DynamoDB."""
