"""The part of S3 that a job run sees, as a folder."""
