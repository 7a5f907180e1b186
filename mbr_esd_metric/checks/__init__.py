"""Errors that need no model: one file a class, found by `check.CHECKS`."""
