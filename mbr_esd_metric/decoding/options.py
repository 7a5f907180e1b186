"""The options of a decision, with their values and meanings.

The arguments of `decide`, the options of model names and command-line options are derived from the fields below, so a
new option is one field here (and, for type checkers, of `DecisionFields`). Values in model names are texts, so
`__post_init__` converts True and False to text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, TypedDict

from mbr_esd_metric.core.annotation import WEIGHTS
from mbr_esd_metric.core.decision import SCORES, WEIGHTINGS
from mbr_esd_metric.core.rules import RULES, Rule, SegmentRule, get_rule, rules
from mbr_esd_metric.core.similarities import SIMILARITIES, Similarity, check_similarity
from mbr_esd_metric.errors import InputError, OptionError, no_effect_error, unknown
from mbr_esd_metric.prompting.formats import FORMATS, get_format
from mbr_esd_metric.prompting.parse import LOCATIONS, AnswerParser

if TYPE_CHECKING:
    from mbr_esd_metric.core.panel import Panel


def _option(
    default: str | None,
    meaning: str,
    valid: Callable[[], Iterable[str]] | None = None,
    *,
    takes: str | Callable[[], str] = "",
    short: str = "",
) -> Any:
    return field(default=default, metadata={"help": meaning, "valid": valid, "takes": takes, "short": short})


@dataclass(frozen=True, slots=True)
class DecisionOptions:
    """The options of a decision. Each field has its meaning and valid values.

    `utility` may also be a `Similarity`, and `weights` a `Panel` with learnt weights. `blank` only has an effect if the
    source is known: in model names and `mbr-esd decide`.

    Raises:
        OptionError: an unknown name (with the closest valid ones).
    """

    rule: str = _option(
        "mbr",
        "decision rule",
        lambda: rules(references=False),
        takes=lambda: "; ".join(f"{name}: {rule.description}" for name, rule in rules(references=False).items()),
        short="d",
    )
    utility: str | Similarity = _option(
        "softf1",
        "utility function that MBR maximises and the other rules report",
        takes=lambda: (
            f"{', '.join(SIMILARITIES.names())}, or a mean such as softf1+scoresim or 0.7*softf1+0.3*scoresim"
        ),
        short="u",
    )
    weights: str | Panel = _option(
        "uniform",
        "weights of the support candidates in the expected utility",
        lambda: WEIGHTINGS,
        takes="uniform; model: the model's probabilities; agreement: one weight per annotator, learnt from the "
        "agreement between them",
        short="w",
    )
    invalid: str = _option(
        "drop",
        "treatment of candidates that cannot be parsed",
        lambda: ("drop", "empty"),
        takes="drop: exclude them; empty: count them as no error",
    )
    mqm: str = _option("paper", "severity weights of the MQM score", lambda: WEIGHTS)
    location: str = _option(
        "word",
        "occurrence to which a span's text is matched",
        lambda: LOCATIONS,
        takes="word: the first as whole words, otherwise inside a word; first: the first of any kind, as in the paper; "
        "successive: for a repeated text, the next one each time",
        short="loc",
    )
    format: str = _option(
        "json", "answer format of the candidates, unless their file specifies it", lambda: FORMATS.names()
    )
    score: str = _option(
        "chosen",
        "score to report",
        lambda: SCORES,
        takes="chosen: of the chosen answer; expected: the mean over the candidates, with its standard deviation; "
        "given: the mean of the scores stated in the answers (formats esa, gemba-mqm and tags)",
    )
    blank: str = _option(
        "worst",
        "treatment of a blank translation of a non-blank source",
        lambda: ("worst", "skip", "perfect"),
        takes="worst: lowest score; skip: no score; perfect: score without errors, as in the paper",
    )
    checks: str = _option(
        "false",
        "add rule-based errors: numbers, addresses, tags, placeholders, copies and repeated words",
        lambda: ("true", "false"),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "checks", str(self.checks).lower())
        if self.rule not in RULES.builtin and self.rule not in RULES.names():
            # The suggestions for an unknown name are rules that need no human annotations.
            raise unknown("rule", self.rule, rules(references=False))
        RULES.check(self.rule)
        FORMATS.check(self.format)
        check_similarity(self.utility)
        for name, valid in _CHOICES.items():
            value = getattr(self, name)
            if isinstance(value, str) and value not in valid:
                raise unknown("MQM weights" if name == "mqm" else name, value, valid)

    @classmethod
    def of(cls, options: DecisionOptions | None, changes: Mapping[str, object]) -> DecisionOptions:
        """These options (or the defaults) with some fields changed. Raises `OptionError` for another type of `options`,
        an unknown field, or an invalid name."""
        if options is not None and not isinstance(options, DecisionOptions):
            raise OptionError(f"options is {options!r}; pass a DecisionOptions, or fields by name such as rule='map'")
        for name in changes:
            if name not in FIELDS:
                raise unknown("option of a decision", name, FIELDS)
        values: dict[str, Any] = {**changes}
        return replace(options or DecisionOptions(), **values)

    @property
    def whole_set(self) -> bool:
        """Whether the rule decides all segments of a test set together."""
        return not isinstance(self.rule_instance, SegmentRule)

    @property
    def rule_instance(self) -> Rule:
        """The rule object."""
        return get_rule(self.rule)

    def parser(self, translation: str, format: str | None = None, source: str | None = None) -> AnswerParser:
        """The parser of a segment's candidates, for their own format or else the one in the options. Raises
        `InputError` if the format requires a source and there is none."""
        answers = get_format(format or self.format)
        if answers.both_sides and source is None:
            raise InputError(f"answers of format={answers.name} mark omissions in the source; pass the source as well")
        return answers.parser(translation, self.location, source or "")

    def both_sides(self, format: str | None = None) -> bool:
        """Whether candidates also mark omissions, by their own format or else the one in the options."""
        return get_format(format or self.format).both_sides

    @property
    def effective_utility(self) -> str:
        """The name of the similarity that the rule uses."""
        return self.rule_instance.fixed_utility or str(self.utility)

    def changed(self, changes: Mapping[str, str], spell: Callable[[str, str], str]) -> DecisionOptions:
        """These options with a user's changes; `spell` formats an option and its value for messages. Raises
        `OptionError` for an invalid name, or an option without effect in combination with the others."""
        values: dict[str, Any] = dict(changes)
        for name, value in values.items():
            try:
                DecisionOptions.of(None, {name: value})
            except OptionError as error:
                raise OptionError(f"{spell(name, value)}: {error}") from None
        changed = replace(self, **values)
        utility = changed.rule_instance.fixed_utility
        if utility is not None and "utility" in changes:
            raise no_effect_error(
                spell("utility", changes["utility"]),
                f"{spell('rule', changed.rule)}, which maximises the corpus {utility}",
            )
        if changed.rule_instance.needs_references:
            raise OptionError(
                f"{spell('rule', changed.rule)} needs human annotations, which candidates files do not have; use one "
                f"of {', '.join(rules(references=False))}"
            )
        return changed


class DecisionFields(TypedDict, total=False):
    """The fields of `DecisionOptions` as arguments of functions, for type checkers and editors."""

    rule: str
    utility: str | Similarity
    weights: str
    invalid: str
    mqm: str
    location: str
    format: str
    score: str
    blank: str
    checks: str | bool


#: Option -> its field, with the metadata "help"; "valid": its valid names, or None; "takes": a description of its
#: values, if more than names; "short": its name in signatures.
FIELDS = {one.name: one for one in fields(DecisionOptions)}
#: Option -> its valid names, for options with a fixed set; other packages can add rules and formats.
_CHOICES = {
    name: tuple(one.metadata["valid"]())
    for name, one in FIELDS.items()
    if one.metadata["valid"] is not None and name not in ("rule", "format")
}
