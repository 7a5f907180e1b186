"""What annotators gave back: Pearmut's log of a campaign, as ratings of people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from mbr_esd_metric.adapters.mqm_tsv import MqmError, MqmRating
from mbr_esd_metric.adapters.pearmut.campaign import character
from mbr_esd_metric.adapters.ratings import Fate, PersonRating, Suggestion
from mbr_esd_metric.core.annotation import ErrorSpan, fold_severity
from mbr_esd_metric.errors import InputError, unknown
from mbr_esd_metric.files.paths import file_name
from mbr_esd_metric.files.streams import numbered_lines
from mbr_esd_metric.files.untrusted import decoded, finite, reading

#: The longest pause that counts as work, in seconds; Pearmut's own number.
_PAUSE = 61.0


@dataclass(frozen=True, slots=True)
class Returned:
    """What annotators gave back.

    Attributes:
        ratings: without attention checks; the last one where an annotator came back to a screen.
        checks: annotator -> (passed, shown) attention checks.
        left_out: reason -> how often.
    """

    ratings: tuple[PersonRating, ...]
    checks: Mapping[str, tuple[int, int]]
    left_out: Mapping[str, int]


def read_campaign(path: str | Path, name: str | None = None) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:
    """A campaign, and the annotations that lie beside it.

    Args:
        path: the file that was added, Pearmut's download of campaigns, or Pearmut's folder.
        name: of the campaign, if there are several.

    Returns:
        The campaign, and its log of annotations if `path` is a folder.

    Raises:
        InputError: no campaign can be read there, it was not made by `mbr-esd annotate export`, or it is not the only
            one and none is named.
    """
    path = Path(path)
    folder = path / "data" if (path / "data").is_dir() else path
    # A download may hold what is no file, such as a pipe, which would be waited for.
    there = [file for file in sorted((folder / "campaigns").glob("*.json")) if file.is_file()]
    files = there if path.is_dir() else [path]
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        value = _json(file)
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, dict) or "campaign_id" not in one:
                raise InputError(f"{file}: this is no campaign of Pearmut; give the file that `pearmut add` took")
            found[str(one["campaign_id"])] = one
    if name is None and len(found) > 1:
        raise InputError(f"{path} has several campaigns ({', '.join(found)}); name one with --campaign")
    if name is None and not found:
        raise InputError(f"{path}: no campaign there; give Pearmut's folder, the one with data/campaigns")
    if name is not None and name not in found:
        raise unknown("campaign", name, found)
    chosen = found[name] if name is not None else next(iter(found.values()))
    if "mbr_esd" not in chosen:
        raise InputError(f"{path}: the campaign {chosen['campaign_id']} was not made by `mbr-esd annotate export`")
    if not path.is_dir():
        return chosen, None
    log = folder / "annotations" / file_name(str(chosen["campaign_id"]), "campaign", ".jsonl")
    return chosen, read_log(log, str(chosen["campaign_id"])) if log.is_file() else []


def read_log(path: str | Path, name: str) -> list[dict[str, Any]]:
    """The annotations of a campaign: Pearmut's log (JSON lines), or its download.

    Raises:
        InputError: names the line, or says that the campaign is not in there.
    """
    if Path(path).suffix == ".jsonl":
        log = []
        for number, line in numbered_lines(path):
            try:
                log.append(decoded(line, writable=True))
            except InputError as error:
                raise InputError(
                    f"{path}, line {number}: {error}; if the server was killed while it wrote this line, "
                    "remove the line"
                ) from None
        return log
    value = _json(Path(path))
    if not isinstance(value, dict) or not isinstance(value.get(name), list):
        raise InputError(f"{path}: no annotations of the campaign {name}; download its annotations")
    return cast("list[dict[str, Any]]", value[name])


def _json(path: Path) -> Any:
    with reading(str(path)):
        return decoded("\n".join(line for _, line in numbered_lines(path)), writable=True)


@dataclass(slots=True)
class _Screen:
    """The last answers of one annotator to one screen; the time of all visits."""

    entry: Mapping[str, Any]
    seconds: dict[tuple[int, str], float] = field(default_factory=lambda: defaultdict(float))


def ratings_of(made: Mapping[str, Any], log: Iterable[Mapping[str, Any]]) -> Returned:
    """What the annotators of a campaign said.

    Args:
        made: the campaign.
        log: its annotations, oldest first.

    Raises:
        InputError: an entry that Pearmut does not write; a system that is not the campaign's.
    """
    screens: dict[tuple[str, str], _Screen] = {}
    left_out: dict[str, int] = defaultdict(int)
    name = made["campaign_id"]
    for number, entry in enumerate(log, 1):
        with reading(f"annotation {number} of {name}"):
            person, screen = str(entry["user_id"]), str(entry.get("item_i"))
            if entry["annotation"] == "__RESET__":
                gone = [key for key in screens if key[0] == person]
                left_out["screen that was reset"] += len(gone)
                for key in gone:
                    del screens[key]
                continue
            there = screens.setdefault((person, screen), _Screen(entry))
            if there.entry is not entry:
                left_out["answer that the same person gave anew: the last one counts"] += 1
                there.entry = entry
            for place, seconds in _seconds(entry["actions"]).items():
                there.seconds[place] += seconds
    checks: dict[str, tuple[int, int]] = {}
    rated: list[tuple[str, str, _Screen]] = []
    for (person, screen), found in screens.items():
        passed, shown = checks.get(person, (0, 0))
        with reading(f"screen {screen} of {person} in {name}"):
            items, said = found.entry["item"], found.entry["annotation"]
            pairs = list(zip(items, said, strict=True))
            rules = [(item, answer) for item, answer in pairs if "validation" in item]
            if rules:
                checks[person] = (passed + all(_passed(item, answer) for item, answer in rules), shown + 1)
                continue
        checks[person] = (passed, shown)
        rated.append((person, screen, found))
    ratings: list[PersonRating] = []
    for person, screen, found in rated:
        with reading(f"screen {screen} of {person} in {name}"):
            for at, item in enumerate(found.entry["item"]):
                ratings += _ratings(made, person, item, found, at, checks[person])
    return Returned(tuple(ratings), checks, dict(left_out))


def _seconds(actions: Sequence[Mapping[str, Any]]) -> dict[tuple[int, str], float]:
    """Seconds for each (segment, system) of a screen: the time up to each action there.

    The time of actions that belong to no translation goes to the next one, and what is left at the end to the last.
    """
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


def _passed(item: Mapping[str, Any], said: Mapping[str, Any]) -> bool:
    """Whether every rule of an attention check has a marked span."""
    return all(
        any(
            wanted["start_i"][0] <= span["start_i"] <= wanted["start_i"][1]
            and wanted["end_i"][0] <= span["end_i"] <= wanted["end_i"][1]
            for span in said[code]["error_spans"]
        )
        for code, rule in item["validation"].items()
        for wanted in rule["error_spans"]
    )


def _ratings(
    made: Mapping[str, Any], person: str, item: Mapping[str, Any], found: _Screen, at: int, checks: tuple[int, int]
) -> Iterator[PersonRating]:
    own = made["mbr_esd"]
    before = item.get("error_spans", {})
    for code, said in found.entry["annotation"][at].items():
        if code not in own["systems"]:
            raise InputError(f"{made['campaign_id']}: the annotations name a system {code!r} that the campaign has not")
        text = item["tgt"][code]
        errors = tuple(_error(span, text) for span in said["error_spans"])
        spans = [_span(span, text) for span in before[code]] if code in before else None
        suggested, added = (None, len(errors)) if spans is None else _fates(spans, errors)
        yield PersonRating(
            MqmRating(
                own["systems"][code],
                str(item["document"]),
                str(item["segment"]),
                str(item["segment"]),
                person,
                item["src"],
                text,
                errors,
                own["language_pair"],
            ),
            None if said.get("score") is None else finite(said["score"]),
            found.seconds[at, code],
            suggested,
            added,
            checks,
        )


def _span(span: Mapping[str, Any], text: str) -> ErrorSpan:
    if "source" in span:
        start, end = span["source"]
        return ErrorSpan(start, end, span["severity"], _stored(span) or None, span.get("confidence"), "source")
    start, end = character(text, _unit(span, "start_i")), character(text, _unit(span, "end_i")) + 1
    return ErrorSpan(start, end, span["severity"], _stored(span) or None, span.get("confidence"))


def _error(span: Mapping[str, Any], text: str) -> MqmError:
    """An error as it was marked. Behind the text stands [missing]: such an error has no place in the source, or that
    which it had when it was marked beforehand."""
    severity = str(span["severity"]).lower()
    if fold_severity(severity) is None:
        raise InputError(f"an error span of severity {span['severity']!r} in {text[:40]!r}")
    ends = _unit(span, "start_i"), _unit(span, "end_i")
    start = character(text, min(ends))
    if start >= len(text):
        return MqmError(severity, _stored(span) or "Accuracy/Omission", "source", *span.get("source", (0, 0)))
    end = min(character(text, max(ends)) + 1, len(text))
    return MqmError(severity, _stored(span), "target", start, end)


def _unit(span: Mapping[str, Any], key: str) -> int:
    unit = span[key]
    if type(unit) is not int or unit < 0:
        raise InputError(f"{key} of an error span is {unit!r}, not a place in the text")
    return unit


def _stored(span: Mapping[str, Any]) -> str:
    """The category; one without parts is stored as "Other/Other"."""
    top, _, part = (span.get("category") or "").partition("/")
    return f"{top}/{part}" if part and part != top else top


def _fates(before: Sequence[ErrorSpan], after: Sequence[MqmError]) -> tuple[tuple[Suggestion, ...], int]:
    """What became of each span that was there, and how many were added.

    A span that is there as before is kept. Of the others, one that still shares characters with a new error is changed,
    and each new error is the change of one span at most.
    """
    new = list(after)
    fates: list[Fate | None] = [None] * len(before)
    for at, span in enumerate(before):
        same = next((e for e in new if _meets(span, e) and (e.start, e.end, e.severity) == _place(span)), None)
        if same is not None:
            new.remove(same)
            fates[at] = "kept"
    for at, span in enumerate(before):
        if fates[at] is None:
            other = next((e for e in new if _meets(span, e)), None)
            if other is not None:
                new.remove(other)
            fates[at] = "deleted" if other is None else "changed"
    found = tuple(Suggestion(span, fate or "deleted") for span, fate in zip(before, fates, strict=True))
    return found, len(new)


def _place(span: ErrorSpan) -> tuple[int, int, str]:
    return span.start, span.end, span.severity


def _meets(span: ErrorSpan, error: MqmError) -> bool:
    """Whether an error has a character of a span; an omission without a place meets any span of the source."""
    if (error.side == "source") != (span.side == "source"):
        return False
    return error.start == error.end or (error.start < span.end and span.start < error.end)
