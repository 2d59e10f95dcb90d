"""The table of sets in DynamoDB, and large slices in S3."""
