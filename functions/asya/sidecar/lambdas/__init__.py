"""What every function of an actor does with a batch: intake, pre-flight, metrics, spans, problems."""
