"""Human MQM annotations as examples of the answers that a model should write.

A model that was never trained for the task does not write usable answers. A few thousand human annotations in the
output format change that. Two choices keep its samples useful:

- Most examples carry errors (`Selection.clean_share`): with the natural share of clean translations, a small model
  learns that "no error" is the safest answer.
- Only errors that the answer can express are taught: an answer says *what* is wrong, and its place is the first
  occurrence of that text (see `mbr_esd_metric.elicit`). If the third of several commas is wrong, no answer can say
  so.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.distill.split import held_out_groups
from mbr_esd_metric.elicit.formats import AnswerFormat, Walk, get_format
from mbr_esd_metric.elicit.prompt import Prompt
from mbr_esd_metric.errors import InputError, OptionError


@dataclass(frozen=True, slots=True)
class HumanAnnotation:
    """One rater's annotation of one translation, or what takes its place.

    Attributes:
        source, translation: the texts.
        lp: such as "en-de"; "" if it is unknown.
        annotation: spans over the translation; a span's category is the published one ("Accuracy/Mistranslation").
            An answer is a set of errors. If two have the same characters and severity, the model learns the first.
        planted_in: the translation without the error that was planted in it, if one was.
    """

    source: str
    translation: str
    lp: str
    annotation: Annotation
    planted_in: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "annotation", Annotation(self.annotation))

    @property
    def group(self) -> str:
        """What a split must not divide."""
        return self.source


@dataclass(frozen=True, slots=True)
class Example:
    """A question and the answer to learn, as the messages of user and assistant.

    Attributes:
        prompt, answer: the texts.
        group: what a split must not divide.
        lp: such as "en-de".
        walk: the answer as a walk through the translation, in formats that have one.
        clean: whether it says that there is no error.
    """

    prompt: str
    answer: str
    group: str
    lp: str = ""
    walk: Walk | None = None
    clean: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """Which annotations to learn from.

    Attributes:
        examples: most examples; None takes all.
        clean_share: share of examples without an error, in [0, 1); None takes them as they come.
        max_characters: longest translation; longer ones are left out.
        max_errors: most errors of one example; annotations with more are left out.
        max_span: longest error text, in characters.
        validation: share of the *sources* kept for validation, in [0, 1).
        seed: of the draw.
    """

    examples: int | None = None
    clean_share: float | None = 0.1
    max_characters: int = 350
    max_errors: int = 6
    max_span: int = 80
    validation: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("clean_share", "validation"):
            share = getattr(self, name)
            if share is not None and not 0 <= share < 1:
                raise OptionError(f"{name} is a share in [0, 1), not {share!r}")
        if self.examples is not None and self.examples < 1:
            raise OptionError(f"examples is at least 1, not {self.examples}")


@dataclass(frozen=True, slots=True)
class Supervision:
    """Examples to learn from and to validate on; no source is in both.

    Attributes:
        train, validation: the examples.
        clean: how many of them have no error.
        inexpressible: errors left out because their text occurs earlier in the translation.
    """

    train: tuple[Example, ...]
    validation: tuple[Example, ...]
    clean: int
    inexpressible: int

    def report(self) -> str:
        """What there is to learn from, as a line of text."""
        return (
            f"{len(self.train)} annotations to learn from, {len(self.validation)} to validate on; {self.clean} of them "
            f"without an error; {self.inexpressible} errors left out whose text occurs earlier in the translation"
        )


def select(
    annotations: Iterable[HumanAnnotation], prompt: Prompt, selection: Selection, answers: AnswerFormat | None = None
) -> Supervision:
    """Draw the examples to learn from. The draw is deterministic and does not depend on the order of the annotations.

    Args:
        annotations: of human raters, or planted.
        prompt: of the questions.
        selection: which annotations to learn from.
        answers: format of the answers; None takes JSON.

    Raises:
        InputError: nothing fits the limits.
    """
    answers = answers or get_format("json")
    with_errors: list[tuple[str, Example]] = []
    clean: list[tuple[str, Example]] = []
    about: dict[str, tuple[str, str]] = {}
    inexpressible = 0
    for item in annotations:
        if not 0 < len(item.translation) <= selection.max_characters or len(item.annotation) > selection.max_errors:
            continue
        if any(span.end - span.start > selection.max_span for span in item.annotation):
            continue
        answer, lost = answers.answer(item.annotation, item.translation, item.source)
        inexpressible += lost
        if lost == len(item.annotation) and lost:
            continue  # do not teach that a translation with errors is clean
        texts = (item.source, item.translation, item.lp or None)
        walk = answers.walk(prompt, *texts)
        example = Example(prompt.render(*texts), answer, item.group, item.lp, walk, not item.annotation)
        digest = _digest(selection.seed, example)
        about[digest] = (item.source, item.planted_in or item.translation)
        (with_errors if item.annotation else clean).append((digest, example))
    if not with_errors and not clean:
        raise InputError(
            f"no annotation fits the limits (translations of at most {selection.max_characters} characters, at most "
            f"{selection.max_errors} errors); raise them"
        )
    with_errors.sort(key=_key)
    share = selection.clean_share
    if share is None:
        share = len(clean) / (len(with_errors) + len(clean))
    most = None if selection.examples is None else round(selection.examples * (1 - share))
    chosen = with_errors[:most]
    # Translations that also stand there with an error come first: the difference between the two is what to learn.
    twice = {about[digest] for digest, _ in chosen}
    clean.sort(key=lambda item: (about[item[0]] not in twice, item[0]))
    chosen_clean = clean if share == 1 else clean[: round(len(chosen) * share / (1 - share))]
    held_out = held_out_groups((e.group for _, e in chosen + chosen_clean), selection.validation, selection.seed)
    drawn = [example for _, example in sorted(chosen + chosen_clean, key=_key)]
    return Supervision(
        tuple(e for e in drawn if e.group not in held_out),
        tuple(e for e in drawn if e.group in held_out),
        len(chosen_clean),
        inexpressible,
    )


def merged(parts: Sequence[Supervision]) -> Supervision:
    """The supervision of several corpora together. A source that is held out in one is held out in all."""
    held_out = {example.group for part in parts for example in part.validation}
    train = [example for part in parts for example in part.train]
    return Supervision(
        tuple(example for example in train if example.group not in held_out),
        tuple(example for part in parts for example in part.validation)
        + tuple(example for example in train if example.group in held_out),
        sum(part.clean for part in parts),
        sum(part.inexpressible for part in parts),
    )


def mixed(supervision: Supervision, shares: Mapping[str, float]) -> Supervision:
    """The supervision with language pairs in given proportions; as many examples as there are in them.

    Args:
        supervision: of several language pairs.
        shares: language pair -> its weight; a language pair without one is left out.

    Raises:
        InputError: a language pair that no example has.
    """
    have = Counter(example.lp for example in supervision.train)
    for lp in shares:
        if not have[lp]:
            raise InputError(f"no example is {lp}; there are {', '.join(sorted(have))}")
    unit = min(have[lp] / weight for lp, weight in shares.items())
    left = {lp: round(unit * weight) for lp, weight in shares.items()}
    train = []
    for example in supervision.train:
        if left.get(example.lp, 0) > 0:
            left[example.lp] -= 1
            train.append(example)
    validation = tuple(example for example in supervision.validation if example.lp in shares)
    clean = sum(example.clean for example in (*train, *validation))
    return replace(supervision, train=tuple(train), validation=validation, clean=clean)


def conversation(example: Example) -> dict[str, list[dict[str, str]]]:
    """The example in the conversational prompt-completion format that TRL reads."""
    return {
        "prompt": [{"role": "user", "content": example.prompt}],
        "completion": [{"role": "assistant", "content": example.answer}],
    }


def _digest(seed: int, example: Example) -> str:
    return hashlib.sha256(f"{seed}\0{example.prompt}\0{example.answer}".encode()).hexdigest()


def _key(item: tuple[str, Example]) -> str:
    return item[0]
