"""Pearmut's files: a campaign as it was added, and the log of its annotations."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from mbr_esd_metric.errors import InputError, OptionError, unknown
from mbr_esd_metric.files.paths import file_name
from mbr_esd_metric.files.streams import numbered_lines
from mbr_esd_metric.files.untrusted import decoded, finite, read_json, reading

#: Protocol -> whether people mark errors.
_PROTOCOLS = {"ESA": True, "cESA": True, "MQM": True, "DA": False}
#: What stands behind a translation, to be marked for what it leaves out.
MISSING = "[missing]"


def read_campaign(path: str | Path, name: str | None = None) -> tuple[dict[str, Any], list[dict[str, Any]] | None]:
    """A campaign, and its log of annotations if `path` is a folder.

    Args:
        path: the file that was added, Pearmut's download of campaigns, or Pearmut's folder.
        name: of the campaign, if there are several.
    """
    path = Path(path)
    folder = path / "data" if (path / "data").is_dir() else path
    # A download may hold what is no file, such as a pipe, which would be waited for.
    files = [file for file in sorted((folder / "campaigns").glob("*.json")) if file.is_file()]
    campaigns: dict[str, dict[str, Any]] = {}
    for file in files if path.is_dir() else [path]:
        value = read_json(file, writable=True)
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, dict) or "campaign_id" not in one:
                raise InputError(f"{file}: this is no campaign of Pearmut; give the file that `pearmut add` took")
            campaigns[str(one["campaign_id"])] = one
    if name is None and len(campaigns) > 1:
        raise InputError(f"{path} has several campaigns ({', '.join(campaigns)}); name one with --campaign")
    if name is None and not campaigns:
        raise InputError(f"{path}: no campaign there; give Pearmut's folder, the one with data/campaigns")
    if name is not None and name not in campaigns:
        raise unknown("campaign", name, campaigns)
    campaign = campaigns[name] if name is not None else next(iter(campaigns.values()))
    if not path.is_dir():
        return campaign, None
    log = folder / "annotations" / file_name(str(campaign["campaign_id"]), "campaign", ".jsonl")
    return campaign, read_log(log, str(campaign["campaign_id"])) if log.is_file() else []


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
    logs = read_logs(path)
    if name not in logs:
        raise InputError(f"{path}: no annotations of the campaign {name}; download its annotations")
    return logs[name]


def read_logs(path: str | Path) -> dict[str, list[dict[str, Any]]]:
    """Campaign -> its annotations, of Pearmut's download."""
    value = read_json(path, writable=True)
    if not isinstance(value, dict) or not all(isinstance(log, list) for log in value.values()):
        raise InputError(f"{path}: no annotations of a campaign; give the file that Pearmut's page downloads")
    return cast("dict[str, list[dict[str, Any]]]", value)


@dataclass(frozen=True, slots=True)
class Campaign:
    """A campaign, as far as it is known.

    Attributes:
        marked: whether people mark errors.
        sliders: name -> lowest and highest value, in place of one score from 0 to 100; None if there is that score.
        tokens: what can be marked behind the text, in order.
        systems: what annotators' browsers get -> the system's name; None if they get the names.
        items: the items that are shown, by all that names them but their translations; None if they are not known.
        people: the annotators; None if anybody may be one.
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
        """A campaign as it was added, or as Pearmut downloads it."""
        name = str(value["campaign_id"])
        with reading(f"campaign {name}"):
            info, key = value.get("info") or {}, value.get("mbr_esd")
            protocol = info.get("protocol", "cESA")
            if protocol not in _PROTOCOLS:
                raise InputError(f"protocol {protocol!r}; read are {', '.join(_PROTOCOLS)}")
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
            raise OptionError(f"the campaign {name} does not say its language pair; give it with --lp, such as en-de")
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
    """All that names an item but its translations."""
    return tuple(item.get(key) for key in ("src", "item_id", "document", "segment"))


def _people(info: Mapping[str, Any], data: Any) -> frozenset[str] | None:
    """The annotators of a campaign in which each has a list of screens; to others Pearmut can add people later."""
    if isinstance(data, Mapping):
        return frozenset(map(str, data))
    if info.get("assignment") != "task-based" or not isinstance(info.get("users"), list):
        return None
    return frozenset(str(user["user_id"] if isinstance(user, Mapping) else user) for user in info["users"])
