"""Results and their index in S3, and the claims on ends in DynamoDB."""
