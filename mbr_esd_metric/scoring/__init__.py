"""Scoring of whole test sets with models of this package, COMET checkpoints, BLEU and chrF."""
