"""EMR Serverless, the pending table, and the files of job runs in S3."""
