"""The one place that says the version."""

__version__ = "0.2.0.dev0"
