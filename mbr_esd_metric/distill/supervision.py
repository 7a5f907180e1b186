"""Annotations as examples of the answers that a model should write: of people, or what MBR chooses.

A model that was never trained for the task does not write usable answers. A few thousand human annotations in the
output format change that. Two choices keep its samples useful:

- Most examples carry errors (`Limits.clean_share`): with the natural share of clean translations, a small model
  learns that "no error" is the safest answer.
- Only errors that the answer can express are taught: an answer says *what* is wrong, and its place is the first
  occurrence of that text (see `mbr_esd_metric.prompting`). If the third of several commas is wrong, no answer can say
  so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from mbr_esd_metric._version import __version__
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.decoding.segment import decide_segment
from mbr_esd_metric.distill.training_folder import TrainingRow, answer, messages, question_of
from mbr_esd_metric.errors import InputError, NoValidCandidateError, OptionError, labelled, number_of
from mbr_esd_metric.files.records import CandidateRecord
from mbr_esd_metric.metric.card import ModelCard
from mbr_esd_metric.prompting.formats import get_format

#: Annotations with more errors, or with a longer error text (in characters), are left out.
MAX_ERRORS, MAX_SPAN = 6, 80


@dataclass(frozen=True, slots=True)
class HumanAnnotation:
    """One rater's annotation of one translation, or what takes its place.

    Attributes:
        source, translation: the texts.
        lp: such as "en-de"; "" if it is unknown.
        annotation: spans over the translation; a span's category is the published one ("Accuracy/Mistranslation").
            An answer is a set of errors. If two have the same characters and severity, the model learns the first.
    """

    source: str
    translation: str
    lp: str
    annotation: Annotation

    def __post_init__(self) -> None:
        object.__setattr__(self, "annotation", self.annotation.with_spans(self.annotation))


@dataclass(frozen=True, slots=True)
class Limits:
    """Which annotations to learn from.

    Attributes:
        examples: most examples; None takes all.
        clean_share: share of examples without an error, in [0, 1); None takes them as they come.
        max_characters: longest translation; longer ones are left out.
    """

    examples: int | None = None
    clean_share: float | None = 0.1
    max_characters: int = 350

    def __post_init__(self) -> None:
        if self.clean_share is not None and not 0 <= self.clean_share < 1:
            raise OptionError(f"--clean-share is a share in [0, 1), not {self.clean_share:g}")
        for name in ("examples", "max_characters"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise OptionError(f"--{name.replace('_', '-')} is at least 1, not {value}")


@dataclass(frozen=True, slots=True)
class Examples:
    """Examples to learn from.

    Attributes:
        rows: of the data set.
        clean: how many of them have no error.
        inexpressible: errors left out because they have no place, or their text occurs earlier in the translation.
    """

    rows: Sequence[TrainingRow]
    clean: int
    inexpressible: int

    def report(self) -> str:
        """The numbers of examples, as a line of text."""
        return (
            f"{number_of(len(self.rows), 'annotation')} to learn from; {self.clean} of them without an error; "
            f"{self.inexpressible} errors left out that have no place, or whose text occurs earlier in the translation"
        )


def choices(records: Iterable[CandidateRecord], card: ModelCard) -> list[HumanAnnotation]:
    """The annotation that the model's rule chooses for each segment. A segment without a valid candidate is left out.

    Raises:
        InputError: as `decide`, with the segment; or no segment at all has a valid candidate.
    """
    chosen, why = [], ""
    for record in records:
        source = card.decision.source_of(record.src, record.columns.format)
        try:
            with labelled(record.label):
                decision = decide_segment(record.columns, record.mt, card.decision, source=source)
        except NoValidCandidateError as error:
            why = str(error)
            continue
        chosen.append(HumanAnnotation(record.src, record.mt, record.lp or "", decision.annotation))
    if why and not chosen:
        raise InputError(f"no segment has a valid candidate; {why}")
    return chosen


def select(annotations: Iterable[HumanAnnotation], card: ModelCard, limits: Limits) -> Examples:
    """Choose the examples to learn from. The choice is deterministic, whatever the order of the annotations.

    Args:
        annotations: of human raters, or of MBR.
        card: the model that is to learn; its prompt and format are those of the examples.
        limits: which annotations to learn from.

    Raises:
        InputError: nothing fits the limits.
        OptionError: the model cannot be trained.
    """
    prompt, answers = question_of(card), get_format(card.decision.format)
    with_errors: list[tuple[str, TrainingRow]] = []
    clean: list[tuple[str, TrainingRow]] = []
    inexpressible = 0
    for item in annotations:
        if not 0 < len(item.translation) <= limits.max_characters or len(item.annotation) > MAX_ERRORS:
            continue
        if any(span.end - span.start > MAX_SPAN for span in item.annotation):
            continue
        text, lost = answers.answer(item.annotation, item.translation, item.source)
        inexpressible += lost + len(item.annotation.points) + len(item.annotation.unplaced)
        if lost == len(item.annotation) and not item.annotation.clean:
            continue  # do not teach that a translation with errors is clean
        question = messages(prompt, item.source, item.translation, item.lp or None)
        row = TrainingRow(item.source, {"prompt": question, "completion": answer(text), "lp": item.lp or None})
        digest = hashlib.sha256(f"{question}\0{text}".encode()).hexdigest()
        (with_errors if item.annotation else clean).append((digest, row))
    if not with_errors and not clean:
        raise InputError(
            f"no annotation fits the limits (translations of at most {limits.max_characters} characters, at most "
            f"{MAX_ERRORS} errors); raise them"
        )
    share = limits.clean_share
    if share is None:
        share = len(clean) / (len(with_errors) + len(clean))
    most = None if limits.examples is None else round(limits.examples * (1 - share))
    digest_of = itemgetter(0)
    chosen = sorted(with_errors, key=digest_of)[:most]
    count = len(clean) if share == 1 else round(len(chosen) * share / (1 - share))
    chosen_clean = sorted(clean, key=digest_of)[:count]
    rows = [row for _, row in sorted(chosen + chosen_clean, key=digest_of)]
    return Examples(rows, len(chosen_clean), inexpressible)


def examples_signature(card: ModelCard) -> str:
    """The signature of the examples."""
    return f"mbr-esd-examples|f:{card.decision.format}|prompt:{question_of(card).version}|v:{__version__}"
