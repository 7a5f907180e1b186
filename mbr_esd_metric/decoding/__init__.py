"""Decisions from candidate texts: for a segment, a test set, or a file."""
