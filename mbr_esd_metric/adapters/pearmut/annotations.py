"""Import of Pearmut's campaigns and logs as human ratings: protocols ESA, cESA, MQM and DA.

A log has an entry for each submitted screen: the shown items, an answer for each of them, and the times of the
annotator's actions. Welcome and goodbye screens, forms and tutorials are not ratings, nor are attention checks: screens
with rules, random screens, and items with such names or no name, as in WMT26's scripts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

from mbr_esd_metric.adapters.pearmut.campaign import character, utf16_units
from mbr_esd_metric.adapters.ratings import Fate, MqmError, Rating, Suggestion, score_in_range
from mbr_esd_metric.core.annotation import fold_severity
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import InputError, OptionError
from mbr_esd_metric.files.paths import file_name
from mbr_esd_metric.files.untrusted import finite, json_objects, read_json, reading

#: Maximum pause that counts as working time, in seconds; Pearmut's value.
_PAUSE = 61.0
#: Name of a screen that is not a rating -> its kind. Pearmut also excludes them from its results.
_SCREENS = {"welcome": "tutorial", "goodbye": "form or closing screen", "random": "attention check"}
#: Separator of the parts of an item's name; the last part may be its position in the document.
_SEPARATOR = re.compile(r"_#{1,3}_")


class Answer(NamedTuple):
    """An annotator's answer for a translation: the number of the screen, the item's position on it, the code of the
    system, the shown items, this item (from the campaign, if known), score and errors, seconds."""

    person: str
    screen: str
    at: int
    code: str
    shown: Sequence[Mapping[str, Any]]
    item: Mapping[str, Any]
    value: Mapping[str, Any]
    seconds: float


@dataclass(slots=True)
class Answers:
    """The answers of a log, oldest first, without attention checks; person -> screen of each check -> whether it was
    passed; and reason -> number of dropped items."""

    kept: list[Answer] = field(default_factory=list)
    checks: dict[str, dict[str, bool]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def answers_of(campaign: Campaign, log: Iterable[Mapping[str, Any]]) -> Answers:
    """The answers in a log, oldest first, after applying resets.

    Raises:
        InputError: a malformed entry; or a person, text or system that is not in the campaign.
    """
    answers = Answers()
    for number, entry in enumerate(log, 1):
        with reading(f"annotation {number} of {campaign.name}"):
            person, screen = str(entry["user_id"]), str(entry.get("item_i"))
            if campaign.people is not None and person not in campaign.people:
                raise InputError(f"annotator {person!r} is not in the campaign ({', '.join(campaign.people)})")
            if entry["annotation"] == "__RESET__":
                old = {one.screen for one in answers.kept if one.person == person}
                answers.left_out["screen that was reset"] += len(old)
                answers.kept = [one for one in answers.kept if one.person != person]
                answers.checks[person] = {}
                continue
            checks = answers.checks.setdefault(person, {})
            kind = _SCREENS.get(screen.partition("_")[0])
            if entry["item"] and "tgt" not in entry["item"][0]:
                kind = kind or _SCREENS["goodbye"]
            if kind and kind != "attention check":
                answers.left_out[kind] += 1
                continue
            items = [_campaign_item(campaign, item) for item in entry["item"]]
            pairs = list(zip(items, entry["annotation"], strict=True))
            # Without the campaign, as in WMT26's release, attention checks are recognised by item names.
            name = str(items[0].get("item_id", "attention_check_")) if campaign.items is None else ""
            is_check = kind is not None or any("validation" in item for item in items)
            if is_check or name.startswith("attention_check_"):
                checks[screen] = all(_passed(item, values or {}) for item, values in pairs)
            elif any("_#_tutorial_#_" in str(item.get("item_id")) for item in items):
                answers.left_out["tutorial"] += 1
            else:
                answers.kept += _answers(campaign, entry, pairs, answers.left_out)
    return answers


def _answers(
    campaign: Campaign, entry: Mapping[str, Any], pairs: Sequence[tuple[Any, Any]], left_out: Counter[str]
) -> Iterator[Answer]:
    """The answers of one screen, given (item, values) `pairs`."""
    person, screen, actions = str(entry["user_id"]), str(entry.get("item_i")), entry.get("actions") or []
    seconds = _seconds(actions)
    skipped = any(action.get("action") == "submit_skip" for action in actions)
    for at, (item, values) in enumerate(pairs):
        for code, value in (values or {}).items():
            if code not in item["tgt"] and campaign.items is None:
                left_out["score of a translation that was not shown"] += 1
            elif code not in item["tgt"] or code not in (campaign.systems or {code}):
                raise InputError(f"the annotations name a system {code!r} that is not in the campaign")
            elif skipped and value.get("score") is None:
                left_out["skipped"] += 1
            else:
                yield Answer(person, screen, at, code, entry["item"], item, value, seconds.get((at, code), 0.0))


def _campaign_item(campaign: Campaign, item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The shown item of the campaign; a screen may show only some of the systems."""
    if campaign.items is None:
        return item
    same = campaign.items.get(identity_of(item), ())
    for one in same:
        if item["tgt"].items() <= one["tgt"].items():
            return one
    what = "another translation" if same else "a source"
    raise InputError(f"{what} that is not in the campaign ({str(item.get('src'))[:40]!r}); give their campaign")


def ratings_of(campaign: Campaign, answers: Answers) -> list[Rating]:
    """The last answer of each annotator for each translation.

    Raises:
        InputError: a score out of range, a missing score that the campaign requires, or an error outside its text.
    """
    numbers: dict[tuple[str, ...], int] = {}
    visits: dict[tuple[str, str, int, str], list[Answer]] = defaultdict(list)
    for one in answers.kept:
        visits[one[:4]].append(one)
    ratings = []
    for (person, screen, at, code), each in visits.items():
        if len(each) > 1:
            answers.left_out["repeated answer by the same person: the last one counts"] += len(each) - 1
        with reading(f"screen {screen} of {person} in {campaign.name}"):
            *_, shown, item, value, _ = each[-1]
            text, (document, label) = item["tgt"][code], _place(numbers, shown, item, at)
            spans = value.get("error_spans") or [] if campaign.marked else []
            errors = tuple(error_of(span, text, campaign.tokens) for span in spans)
            suggested, added = None, len(errors)
            if campaign.marked and code in item.get("error_spans", {}):
                before = item["error_spans"][code]
                marks = (replace(error_of(s, text, campaign.tokens), confidence=s.get("confidence")) for s in before)
                suggested, added = _fates(list(marks), errors)
            system = code if campaign.systems is None else campaign.systems[code]
            source = str(item.get("src_text") or item.get("src") or "")
            ratings.append(
                Rating(
                    Segment(source, text, label, system, document),
                    *(person, errors, campaign.language_pair),
                    score=_score(campaign, value),
                    marked=campaign.marked,
                    seconds=sum(one.seconds for one in each),
                    suggested=suggested,
                    added=added,
                    checks=(sum(answers.checks[person].values()), len(answers.checks[person])),
                )
            )
    return ratings


def _score(campaign: Campaign, answer: Mapping[str, Any]) -> float | None:
    """The score from 0 to 100, or the mean of the sliders that replace it."""
    if campaign.sliders is None:
        if answer.get("score") is None:
            raise InputError("no score, but the campaign requires one")
        return score_in_range(answer["score"])
    if not campaign.sliders:
        return None
    values = []
    for name, (low, high) in campaign.sliders.items():
        value = finite((answer.get("sliders") or {})[name])
        if not low <= value <= high:
            raise InputError(f"{name} is {value:g}, but must be between {low:g} and {high:g}")
        values.append(100.0 * (value - low) / (high - low) if high > low else 100.0)
    return sum(values) / len(values)


def _place(
    numbers: dict[tuple[str, ...], int], screen: Sequence[Mapping[str, Any]], item: Mapping[str, Any], at: int
) -> tuple[str, str]:
    """The document and segment of the item at this position; without names, `numbers` numbers the screens by their
    sources."""
    if "document" in item:
        return str(item["document"]), str(item["segment"])
    if "item_id" in screen[0]:
        first = str(screen[0]["item_id"])
        *document, place = _SEPARATOR.split(first)
        return first[: -len(place)].rstrip("_#") if document and place.isdigit() else first, str(at + 1)
    sources = tuple(str(one.get("src")) for one in screen)
    return f"document {numbers.setdefault(sources, len(numbers) + 1)}", str(at + 1)


def _seconds(actions: Sequence[Mapping[str, Any]]) -> dict[tuple[int, str], float]:
    """Seconds for each (segment, system) of a screen: the time before each action on it. The time of other actions is
    assigned to the next translation, and the remaining time to the last one."""
    spent: dict[tuple[int, str], float] = defaultdict(float)
    waiting, last = 0.0, None
    for before, after in pairwise(actions):
        waiting += min(max(finite(after["time"]) - finite(before["time"]), 0.0), _PAUSE)
        if "index" in after and "model" in after:
            last = (int(after["index"]), str(after["model"]))
            spent[last] += waiting
            waiting = 0.0
    if last is not None:
        spent[last] += waiting
    return spent


def _passed(item: Mapping[str, Any], answers: Mapping[str, Any]) -> bool:
    """Whether the answer for each translation satisfies its rules, as in Pearmut."""

    def keeps(values: Mapping[str, Any], rule: Mapping[str, Any], keys: Iterable[str]) -> bool:
        """Whether these values equal the rule's, or are in its range."""
        pairs = ((values[key], rule[key]) for key in keys if key in rule)
        return all(v is not None and r[0] <= v <= r[1] if isinstance(r, list) else v == r for v, r in pairs)

    for code, rule in item.get("validation", {}).items():
        answer, sliders = answers[code], answers[code].get("sliders") or {}
        if not (keeps(answer, rule, ["score"]) and keeps(sliders, rule, sliders)):
            return False
        for error in rule.get("error_spans", ()):
            if not any(keeps(span, error, ["start_i", "end_i", "severity"]) for span in answer["error_spans"]):
                return False
        if "score_greaterthan" in rule:
            scores = answer["score"], answers.get(rule["score_greaterthan"], {"score": None})["score"]
            if None in scores or scores[0] <= scores[1]:
                return False
    return True


def error_of(span: Mapping[str, Any], text: str, tokens: Sequence[str]) -> MqmError:
    """The error of a marked span. Tokens follow the text. An error marked on [missing] has the source position of its
    pre-filled span, if any; errors marked on other tokens have no position."""
    severity = str(span["severity"]).lower()
    if fold_severity(severity) is None:
        raise InputError(f"an error span of severity {span['severity']!r} in {text[:40]!r}")
    ends = [span["start_i"], span["end_i"]]
    if any(type(end) is not int or end < 0 for end in ends):
        raise InputError(f"an error span from {ends[0]!r} to {ends[1]!r}, not a place in the text")
    ends.sort()
    units = utf16_units(text, len(text))
    if ends[1] >= units + max(len(tokens), 1):
        raise InputError(f"an error span ends at unit {ends[1]} of a translation of {units}: {text[:40]!r}")
    if ends[0] >= units:
        token = tokens[ends[0] - units] if tokens else MISSING
        if token.lower() == MISSING:
            return MqmError(severity, _stored(span) or "Accuracy/Omission", "source", *span.get("source", (0, 0)))
        return MqmError(severity, _stored(span) or token.strip("[]"))
    start, end = character(text, ends[0]), min(character(text, ends[1]) + 1, len(text))
    return MqmError(severity, _stored(span), "translation", start, end)


def _stored(span: Mapping[str, Any]) -> str:
    """The category; Pearmut stores a category without parts as "Other/Other"."""
    top, _, part = (span.get("category") or "").partition("/")
    return f"{top}/{part}" if part and part != top else top


def _fates(before: Sequence[MqmError], after: Sequence[MqmError]) -> tuple[tuple[Suggestion, ...], int]:
    """The fate of each pre-filled span, and the number of added errors.

    An unchanged span is kept. Of the others, a span that overlaps a new error is changed, where each new error belongs
    to at most one span. An omission without a position overlaps any span of the source.
    """
    new = list(after)
    fates: dict[int, Fate] = {}
    for exactly in (True, False):
        for at, old in enumerate(before):
            for error in [] if at in fates else new:
                meets = error.start == error.end or (error.start < old.end and old.start < error.end)
                is_same = (error.start, error.end, error.severity) == (old.start, old.end, old.severity)
                if error.side == old.side and (is_same if exactly else meets):
                    new.remove(error)
                    fates[at] = "kept" if exactly else "changed"
                    break
    return tuple(Suggestion(old, fates.get(at, "deleted")) for at, old in enumerate(before)), len(new)


#: Protocol -> whether it includes marking errors.
_PROTOCOLS = {"ESA": True, "cESA": True, "MQM": True, "DA": False}
#: Token after a translation, for marking omissions.
MISSING = "[missing]"


def read_campaign(path: str | Path) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:
    """Read a campaign from a campaign file, Pearmut's download, a file in Pearmut's folder, or this folder if it has a
    single campaign; in the last two cases, with its log of annotations."""
    path = Path(path)
    if path.is_dir():
        folder = (path / "data" if (path / "data").is_dir() else path) / "campaigns"
        files = sorted(folder.glob("*.json"))
        if len(files) > 1:
            raise InputError(f"{path} has several campaigns; give the file of one: {', '.join(map(str, files))}")
        if not files:
            raise InputError(f"{path}: no campaign there; give Pearmut's folder, the one with data/campaigns")
        path = files[0]
    value = read_json(path, writable=True)
    campaigns = value if isinstance(value, list) else [value]
    if not campaigns or not all(isinstance(one, dict) and "campaign_id" in one for one in campaigns):
        raise InputError(f"{path}: not a Pearmut campaign; give the file that `pearmut add` took")
    if len(campaigns) > 1:
        names = ", ".join(str(one["campaign_id"]) for one in campaigns)
        raise InputError(f"{path} has several campaigns ({names}); download one at a time")
    if path.parent.name != "campaigns":
        return campaigns[0], None
    name = str(campaigns[0]["campaign_id"])
    log = path.parents[1] / "annotations" / file_name(name, "campaign", ".jsonl")
    return campaigns[0], read_log(log, name) if log.is_file() else []


def read_log(path: str | Path, name: str) -> list[dict[str, Any]]:
    """The annotations of a campaign, from Pearmut's log (JSON lines) or download. Raises `InputError` with the line, or
    if the campaign is not in the file."""
    if Path(path).suffix == ".jsonl":
        try:
            return [dict(item) for _, _, item in json_objects(path)]
        except InputError as error:
            raise InputError(f"{error}; if the server was killed while it wrote this line, remove the line") from None
    logs = read_logs(path)
    if name not in logs:
        raise InputError(f"{path}: no annotations of the campaign {name}; download its annotations")
    return logs[name]


def read_logs(path: str | Path) -> dict[str, list[dict[str, Any]]]:
    """Campaign -> its annotations, from Pearmut's download."""
    value = read_json(path, writable=True)
    if not isinstance(value, dict) or not all(isinstance(log, list) for log in value.values()):
        raise InputError(f"{path}: no annotations of a campaign; give the file that Pearmut's page downloads")
    return cast("dict[str, list[dict[str, Any]]]", value)


@dataclass(frozen=True, slots=True)
class Campaign:
    """The known data of a campaign.

    Attributes:
        marked: whether annotators mark errors.
        sliders: name -> lowest and highest value, if sliders replace the score from 0 to 100; otherwise None.
        tokens: tokens after the text that can be marked, in order.
        systems: code in annotators' browsers -> system name; None if browsers get the names.
        items: identity -> shown items; None if unknown.
        people: the annotators; None if not restricted.
    """

    name: str
    language_pair: str
    marked: bool = True
    sliders: Mapping[str, tuple[float, float]] | None = None
    tokens: tuple[str, ...] = (MISSING,)
    systems: Mapping[str, str] | None = None
    items: Mapping[tuple[Any, ...], Sequence[Mapping[str, Any]]] | None = None
    people: frozenset[str] | None = None

    @classmethod
    def of(cls, value: Mapping[str, Any], language_pair: str | None = None) -> Campaign:
        """The campaign in a campaign file or Pearmut's download."""
        name = str(value["campaign_id"])
        with reading(f"campaign {name}"):
            info, key = value.get("info") or {}, value.get("mbr_esd")
            protocol = info.get("protocol", "cESA")
            if protocol not in _PROTOCOLS:
                raise InputError(f"protocol {protocol!r} is not supported; supported are {', '.join(_PROTOCOLS)}")
            named = re.match(r"(\w+)---(\w+)", name)  # such as WMT26's "eng_Latn---deu_Latn v3"
            pair = key["language_pair"] if key else language_pair or (f"{named[1]}-{named[2]}" if named else None)
            sliders = None
            if "sliders" in info:
                sliders = {str(s["name"]): (finite(s["min"]), finite(s["max"])) for s in info["sliders"]}
            items: dict[tuple[Any, ...], list[Mapping[str, Any]]] = defaultdict(list)
            for item in _items(value["data"], value.get("data_welcome"), value.get("data_random")):
                items[identity_of(item)].append(item)
            tokens = tuple(info.get("special_tokens", [MISSING] if _PROTOCOLS[protocol] else []))
            systems = key["systems"] if key else None
            people = _people(info, value["data"])
        if pair is None:
            raise OptionError(f"the campaign {name} has no language pair; set it with --lp, such as en-de")
        return cls(name, pair, _PROTOCOLS[protocol], sliders, tokens, systems, items, people)


def _items(*nested: Any) -> Iterator[Mapping[str, Any]]:
    """The items with translations in lists and dictionaries of documents."""
    for one in nested:
        if isinstance(one, Mapping) and "tgt" in one:
            yield one
        elif isinstance(one, Mapping):
            yield from _items(*one.values())
        elif isinstance(one, list):
            yield from _items(*one)


def identity_of(item: Mapping[str, Any]) -> tuple[Any, ...]:
    """The identity of an item: its fields without translations."""
    return tuple(item.get(key) for key in ("src", "item_id", "document", "segment"))


def _people(info: Mapping[str, Any], data: Any) -> frozenset[str] | None:
    """The annotators of a campaign with a list of screens per annotator; in others, Pearmut can add annotators
    later."""
    if isinstance(data, Mapping):
        return frozenset(map(str, data))
    if info.get("assignment") != "task-based" or not isinstance(info.get("users"), list):
        return None
    return frozenset(str(user["user_id"] if isinstance(user, Mapping) else user) for user in info["users"])
