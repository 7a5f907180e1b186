"""The signature of a score: the settings that it depends on, by name, in the manner of sacreBLEU."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mbr_esd_metric.messages import first_of

#: The field of the release that computed the score.
VERSION = "v"
#: The field of the digest of a file of candidates, which stands for the model and the draw.
CANDIDATES = "candidates"
#: Fields that say how a decision is made from candidates. Any other field says which candidates there are.
_OF_DECISION = frozenset(("d", "u", "w", "b", "g", "mqm", "loc", "invalid", "blank", "score", "checks", "cal", VERSION))
#: What stands for the value of a field that a signature lacks, because it is at its default or not known.
_UNSET = "unset"
#: The fields of a signature in one line.
_SHORT = frozenset(("model", CANDIDATES, "n", "d", "u", "score", VERSION))


@dataclass(frozen=True, slots=True)
class Signature:
    """What a score depends on. Printed: ``mbr-esd|model:m|engine:vllm|d:mbr|n:256|t:2.0|...|v:0.1.0``.

    Attributes:
        tool: what computed the score, such as "mbr-esd", "comet" or "BLEU".
        fields: names and values in the order in which they are printed; a word that has no value has None.
    """

    tool: str
    fields: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def of(cls, tool: str, fields: Mapping[str, Any], version: str) -> Signature:
        """The signature of a tool of this package, with its release. A bar in a value is percent-encoded."""
        values = {**fields, VERSION: version}
        return cls(tool, tuple((name, str(value).replace("|", "%7C")) for name, value in values.items()))

    @classmethod
    def parse(cls, text: str) -> Signature:
        """The signature that was printed as this text; of any text, so that its `str` is the text again."""
        tool, *words = text.split("|")
        parts = (word.partition(":") for word in words)
        return cls(tool, tuple((name, value if colon else None) for name, colon, value in parts))

    def __str__(self) -> str:
        return "|".join([self.tool, *(name if value is None else f"{name}:{value}" for name, value in self.fields)])

    def get(self, name: str) -> str | None:
        """The value of a field; None where there is no such field, or it has no value."""
        return next((value for field, value in self.fields if field == name), None)

    def with_words(self, *words: str) -> Signature:
        """A copy with more words after the fields."""
        return Signature(self.tool, (*self.fields, *((word, None) for word in words)))

    @property
    def short(self) -> Signature:
        """The model or the candidates, how many, rule, utility, score and version."""
        return Signature(self.tool, tuple(field for field in self.fields if field[0] in _SHORT))

    @property
    def samples(self) -> int | None:
        """The number of candidates per segment, if the signature records it."""
        number = self.get("n") or ""
        return int(number) if number.isdecimal() else None

    def same_candidates(self, other: Signature) -> bool:
        """Whether both scores were decided on the same candidates, however they were decided."""
        return not differences((self, other), without=_OF_DECISION)


def differences(signatures: Iterable[Signature], without: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Name of a field, or "tool" -> its different values, "unset" where a signature lacks it, in the order of the
    signatures; fields that are the same everywhere, and those `without`, are missing."""
    every = [{"tool": one.tool, **dict(one.fields)} for one in dict.fromkeys(signatures)]
    names = dict.fromkeys(name for fields in every for name in fields if name not in without)
    values = {name: tuple(dict.fromkeys(_value(fields, name) for fields in every)) for name in names}
    return {name: different for name, different in values.items() if len(different) > 1}


def _value(fields: Mapping[str, str | None], name: str) -> str:
    value = fields.get(name, _UNSET)
    return "set" if value is None else value


@dataclass(frozen=True, slots=True)
class Settings:
    """The origin of a score, as recorded in a file.

    Attributes:
        model: the name of the model, perhaps with options behind a question mark.
        signature: of the score.
        file: the file itself, as messages name it.
    """

    model: str | None = None
    signature: Signature | None = None
    file: str = ""

    @property
    def title(self) -> str | None:
        """The model's name, without options."""
        return self.model and self.model.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Comparability:
    """Why scores cannot be compared, or None; and remarks on what is not known."""

    problem: str | None
    notes: tuple[str, ...] = ()


def comparability(scores: Iterable[Settings]) -> Comparability:
    """Whether scores of these origins have one scale: one model, and the same value in each field of the signature.

    Another release, another file of candidates and a file without signatures are remarks, because they leave it open.
    """
    each = list(dict.fromkeys(scores))
    signatures = [one.signature for one in each if one.signature is not None]
    different, notes = differences(signatures), []
    if releases := different.pop(VERSION, ()):
        notes.append(f"scores of releases {' and '.join(releases)}; another release may score differently")
    if _UNSET not in different.get(CANDIDATES, (_UNSET,)):
        digests = " and ".join(different.pop(CANDIDATES))
        notes.append(
            f"candidates of different files ({digests}), which do not record whether the same model sampled them"
        )
    without = dict.fromkeys(one.file for one in each if one.signature is None)
    if without and len({one.file for one in each}) > 1:
        notes.append(f"{', '.join(without)}: no signature, so the settings of these scores are unknown")
    titles = sorted({one.title for one in each if one.title})
    known = len(signatures) == len(each) and all(one.get("model") for one in signatures)
    if len(titles) > 1 and (different or not known):
        return Comparability(f"scores of several models ({first_of(titles)})", tuple(notes))
    fields = [f"{name}: {' and '.join(values)}" for name, values in different.items()]
    return Comparability(f"scores of different settings ({first_of(fields)})" if fields else None, tuple(notes))
