"""The language of a file, from its name or folder."""

from __future__ import annotations

import re
from pathlib import Path

_CODE = r"[a-z]{2,3}(?:[-_](?:[A-Z][a-z]{3}|[a-z]{4}))?(?:[-_](?:[A-Z]{2}|\d{3}))?|[a-z]{2}[-_][a-z]{2}"
#: A language at the end of a name: ``app_de``, ``messages_pt_BR``, ``strings.zh-Hans``; or two letters at its start.
_AT_END = re.compile(r".+[._-](?P<code>[a-z]{2}(?:[-_](?:[A-Z][a-z]{3}|[a-z]{4}))?(?:[-_](?:[A-Z]{2}|\d{3}))?)")
#: Android's folders, with a region or as BCP 47 codes; and Apple's.
_ANDROID = re.compile(
    r"values-(?:b\+(?P<bcp>\w+(?:\+\w+)*)|(?P<code>[a-z]{2,3})(?:-r(?P<region>[A-Z]{2}|\d{3}))?)(?:-.*)?"
)
_APPLE = re.compile(rf"(?P<code>{_CODE})\.lproj")
#: Folders that contain one folder per language.
_HOMES = re.compile(r"_?(?:locales?|lang(?:uage)?s?|i18n|l10n|translations?|messages)", re.IGNORECASE)


def language_of(path: Path) -> str:
    """The code of the language of a file by its name or folder, such as ``de.json``, ``values-pt-rBR/strings.xml`` or
    ``fr/LC_MESSAGES/app.po``; "" if neither contains one."""
    folders = [folder.name for folder in path.absolute().parents]
    folder = folders[0] if folders else ""
    if android := _ANDROID.fullmatch(folder):
        region = f"-{android['region']}" if android["region"] else ""
        return _known(android["bcp"].replace("+", "-") if android["bcp"] else android["code"] + region)
    if apple := _APPLE.fullmatch(folder):
        return _known(apple["code"])
    if folder == "LC_MESSAGES":
        return _known(folders[1])
    if _is_code(path.stem, folder) and (language := _known(path.stem)):
        return language
    if (at_end := _AT_END.fullmatch(path.stem)) and (language := _known(at_end["code"])):
        return language
    return _known(folder) if len(folders) > 1 and _is_code(folder, folders[1]) else ""


def _is_code(name: str, folder: str) -> bool:
    """Whether a name may be a language code; three letters, such as "app", only count in a folder for languages."""
    match = re.fullmatch(_CODE, name)
    return match is not None and (len(re.split("[-_]", name)[0]) == 2 or _HOMES.fullmatch(folder) is not None)


def _known(code: str) -> str:
    """The code, if it is a known language; otherwise ""."""
    from langcodes import tag_is_valid

    return code.replace("_", "-") if tag_is_valid(code) else ""
