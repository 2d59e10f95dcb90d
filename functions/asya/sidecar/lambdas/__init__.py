"""The Lambda function of a light actor, and the parts that other functions share with it."""
