"""What a deployment does beside `cdk deploy`: checks before it, and protection after it."""
