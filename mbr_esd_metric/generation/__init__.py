"""Engines that sample candidate annotations from a language model, and the store that keeps the candidates."""
