"""The state of sidecars in DynamoDB and S3: circuits, buffered frames, archived inputs, completed hops."""
