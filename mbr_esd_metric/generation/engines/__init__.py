"""Engines, one per file. Every class in this folder with a `name` is available under it."""
