"""Answer formats; each is prompt, grammar and parser together (see `answer_format.AnswerFormat`).

Each format has its own file, named like it, so a new one needs no edit elsewhere. Other packages offer formats by entry
points.
"""

from mbr_esd_metric.prompting.answer_format import FORMATS, AnswerFormat, get_format
from mbr_esd_metric.prompting.parse import AnswerParser

__all__ = ["FORMATS", "AnswerFormat", "AnswerParser", "get_format"]
