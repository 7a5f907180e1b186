"""Model cards, engine selection, the run, its signature, and the `Metric` that users call."""
