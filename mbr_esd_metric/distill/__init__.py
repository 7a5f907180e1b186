"""Distillation: preference pairs from candidates, the supervised start, and DPO."""
