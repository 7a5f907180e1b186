"""Distillation: TRL training data for DPO and supervised fine-tuning."""
