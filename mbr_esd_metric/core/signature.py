"""The signature of a score: the settings that it depends on, by name, as in sacreBLEU."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mbr_esd_metric.messages import first_of

#: Field with the release that computed the score.
VERSION = "v"
#: Field with the digest of a candidates file, which replaces the model and sampling fields.
CANDIDATES = "candidates"
#: Fields of the decision from candidates. Any other field describes the candidates.
_OF_DECISION = frozenset(("d", "u", "w", "b", "g", "mqm", "loc", "invalid", "blank", "score", "checks", "cal", VERSION))
#: Value of a field that a signature lacks, because it is at its default or unknown.
_UNSET = "unset"
#: The fields of a signature in one line.
_SHORT = frozenset(("model", CANDIDATES, "n", "d", "u", "score", VERSION))


@dataclass(frozen=True, slots=True)
class Signature:
    """The settings that a score depends on. Printed: ``mbr-esd|model:m|engine:vllm|d:mbr|n:256|t:2.0|...|v:0.1.0``.

    Attributes:
        tool: the tool that computed the score, such as "mbr-esd", "comet" or "BLEU".
        fields: names and values in printing order; the value of a word without value is None.
    """

    tool: str
    fields: tuple[tuple[str, str | None], ...] = ()

    @classmethod
    def of(cls, tool: str, fields: Mapping[str, Any], version: str) -> Signature:
        """The signature of a tool of this package, with the release. Bars in values are percent-encoded."""
        values = {**fields, VERSION: version}
        return cls(tool, tuple((name, str(value).replace("|", "%7C")) for name, value in values.items()))

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Parse a printed signature; works for any text, and `str` returns the same text."""
        tool, *words = text.split("|")
        parts = (word.partition(":") for word in words)
        return cls(tool, tuple((name, value if colon else None) for name, colon, value in parts))

    def __str__(self) -> str:
        return "|".join([self.tool, *(name if value is None else f"{name}:{value}" for name, value in self.fields)])

    def get(self, name: str) -> str | None:
        """The value of a field; None if there is no such field, or it has no value."""
        return next((value for field, value in self.fields if field == name), None)

    def with_words(self, *words: str) -> Signature:
        """A copy with words added after the fields."""
        return Signature(self.tool, (*self.fields, *((word, None) for word in words)))

    @property
    def short(self) -> Signature:
        """The short form: model or candidates, N, rule, utility, score and version."""
        return Signature(self.tool, tuple(field for field in self.fields if field[0] in _SHORT))

    @property
    def samples(self) -> int | None:
        """The number of candidates per segment, if the signature records it."""
        number = self.get("n") or ""
        return int(number) if number.isdecimal() else None

    def same_candidates(self, other: Signature) -> bool:
        """Whether both scores are based on the same candidates, with any decision options."""
        return not differences((self, other), without=_OF_DECISION)


def differences(signatures: Iterable[Signature], without: Collection[str] = ()) -> dict[str, tuple[str, ...]]:
    """Field name, or "tool" -> its distinct values, in the order of the signatures, "unset" if a signature lacks it.
    Fields with a single value, and those in `without`, are not included."""
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
        model: the name of the model, optionally with options after a question mark.
        signature: the signature of the score.
        file: the file, for messages.
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
    """The reason why scores cannot be compared, or None, and notes on unknown settings."""

    problem: str | None
    notes: tuple[str, ...] = ()


def comparability(scores: Iterable[Settings]) -> Comparability:
    """Whether scores of these origins are comparable: from one model, with equal values in each field of the signature.
    Different releases or candidates files, and files without signatures, only cause notes, because the scores may still
    be comparable.
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
