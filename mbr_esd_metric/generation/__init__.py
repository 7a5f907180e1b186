"""Engines that sample candidate annotations from a language model, and the candidate store."""
