"""Errors that can be detected without a model: one class per file, found by `check.CHECKS`."""
