"""The fan-in table in DynamoDB."""
