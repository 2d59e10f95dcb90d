"""The functions that enqueue, dispatch, complete and reconcile."""
