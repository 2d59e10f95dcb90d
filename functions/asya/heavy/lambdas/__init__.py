"""The Lambda functions of heavy actors: enqueue, dispatch, complete, reconcile."""
