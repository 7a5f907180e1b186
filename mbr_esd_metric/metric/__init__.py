"""The metric that users call: model cards, the choice of an engine, the run, and its signature."""
