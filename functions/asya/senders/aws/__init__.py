"""The list of roles in DynamoDB, and the answers to CloudFormation."""
