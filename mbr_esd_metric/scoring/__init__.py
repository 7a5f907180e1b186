"""Scores whole test sets with anything that scores: models of this package, COMET checkpoints, BLEU and chrF."""
