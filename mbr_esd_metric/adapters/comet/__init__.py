"""Integration of this package's models into unbabel-comet: registration, the metric class, and clearer errors in its
commands."""
