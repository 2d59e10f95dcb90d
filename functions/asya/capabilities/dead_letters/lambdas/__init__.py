"""The Lambda function that reports dead letters."""
