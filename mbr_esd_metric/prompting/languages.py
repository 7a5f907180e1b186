"""Languages: pairs of codes, their names in prompts, and the language that a text is in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.errors import OptionError
from mbr_esd_metric.log import logger

#: Names by code, as in the prompts of stored candidates; `langcodes` has the others.
_NAMES: dict[str, str] = dict(
    re.findall(
        r"([a-z]+) ([A-Z][A-Za-z ]*)",
        """
af Afrikaans, am Amharic, ar Arabic, az Azerbaijani, be Belarusian, bg Bulgarian, bho Bhojpuri, bn Bengali,
bs Bosnian, ca Catalan, cs Czech, cy Welsh, da Danish, de German, el Greek, en English, eo Esperanto, es Spanish,
et Estonian, eu Basque, fa Persian, fi Finnish, fr French, ga Irish, gl Galician, gu Gujarati, ha Hausa, he Hebrew,
hi Hindi, hr Croatian, hu Hungarian, hy Armenian, id Indonesian, ig Igbo, is Icelandic, it Italian, iu Inuktitut,
ja Japanese, ka Georgian, kk Kazakh, km Khmer, kn Kannada, ko Korean, ky Kyrgyz, la Latin, lb Luxembourgish,
liv Livonian, lo Lao, lt Lithuanian, lv Latvian, mas Maasai, mk Macedonian, ml Malayalam, mn Mongolian, mr Marathi,
ms Malay, mt Maltese, my Burmese, nb Norwegian, ne Nepali, nl Dutch, nn Norwegian Nynorsk, no Norwegian, pa Punjabi,
pl Polish, ps Pashto, pt Portuguese, ro Romanian, ru Russian, sah Yakut, si Sinhala, sk Slovak, sl Slovenian,
so Somali, sq Albanian, sr Serbian, sv Swedish, sw Swahili, ta Tamil, te Telugu, tg Tajik, th Thai, tl Tagalog,
tr Turkish, uk Ukrainian, ur Urdu, uz Uzbek, vi Vietnamese, xh Xhosa, yo Yoruba, zh Chinese, zu Zulu
""",
    )
)
#: Languages that py3langid takes for one another, or that it knows in one of their scripts.
_ALIKE = (
    *({"bs", "hr", "sr"}, {"da", "nb", "nn", "no"}, {"id", "ms"}, {"bg", "mk", "ru", "sr"}),
    *({"ku", "ar"}, {"ku", "fa"}, {"ku", "ug"}, {"ku", "ur"}),  # Kurdish in Arabic script
)
#: The fewest letters of a text whose language is told, and the difference of two log-probabilities that makes it sure.
#: Of 34,741 texts in 16 languages 20 were then taken for another one, and .4% of texts in another one were missed.
FEWEST_LETTERS, _SURE = 40, 20.0
#: The difference that makes one of two languages likelier, and the largest one to the likeliest of all languages.
_LIKELIER, _NEAR = 3.0, 10.0
#: The same difference that leaves a language likely, and the characters that tell it.
_UNSURE, _ENOUGH = 20.0, 100
#: Number of texts that tell the language of all.
_TEXTS = 200
#: The languages that a text is likely to be in.
_MANY_SPEAKERS = frozenset(
    re.findall(
        r"\w+",
        """
        ar bg bn bs ca cs da de el en es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk kn ko lt lv mk
        ml mn mr ms nb ne nl pa pl ps pt ro ru si sk sl sq sr sv sw ta te th tl tr uk ur uz vi zh
        """,
    )
)
#: Letters that only one large language has.
_SCRIPTS = {
    "[\u3040-\u30ff]": "ja",
    "[\uac00-\ud7af]": "ko",
    "[\u3400-\u9fff]": "zh",
    "[\u0e01-\u0e5b]": "th",
    "[\u0370-\u03ff]": "el",
    "[\u0590-\u05ff]": "he",
    "[\u0b80-\u0bff]": "ta",
    "[\u0c00-\u0c7f]": "te",
    "[\u10a0-\u10ff]": "ka",
    "[\u0530-\u058f]": "hy",
}
#: Characters of a text whose language is told; more changes no answer.
_BEGINNING = 5000
#: Texts of a file whose languages are told, and the share of them that is not chance.
_SAMPLED, _SEVERAL = 200, 0.1


def language_pair(lp: str) -> tuple[str, str]:
    """The codes of the source and the target language of a pair such as "en-de", "ja-zh_TW" or "en-zh-CN". Raises
    `OptionError` for what is not two codes joined by a hyphen, each of two or three letters, perhaps with a region."""
    subtags = lp.split("-")
    ways = [("-".join(subtags[:at]), "-".join(subtags[at:])) for at in range(1, len(subtags))]
    if len(ways) > 1:  # a hyphen may also stand before a region, which is written in capitals
        from langcodes import tag_is_valid

        ways = [way for way in ways if all(map(tag_is_valid, way))]
        ways.sort(key=lambda way: not way[1][:2].islower())
    if not ways or not all(re.fullmatch(r"([A-Za-z]{2,3}|x)([-_][0-9A-Za-z]+)*", code) for code in ways[0]):
        raise OptionError(f"a language pair is two language codes such as 'en-de', not {lp!r}")
    return ways[0]


def lp_of(segment: Segment) -> str | None:
    """The language pair of the segment's file, as codes without regions; None where it does not name both."""
    languages = segment.known.source_language, segment.known.target_language
    return "-".join(language_code(one or "") for one in languages) if all(languages) else None


@lru_cache(maxsize=256)
def language_code(code: str) -> str:
    """The code of a language alone, in its shortest form: "pt" for "pt-BR", "en" for "eng_Latn", "he" for "iw"."""
    first = re.split("[^0-9A-Za-z]", code)[0].lower()
    if first in _NAMES:
        return first
    from langcodes import Language, tag_is_valid

    return (tag_is_valid(first) and Language.get(first).language) or first


@lru_cache(maxsize=256)
def script_of(code: str) -> str | None:
    """The code of the script that a language is usually written in: "Latn" for "en" and "sr-Latn"."""
    from langcodes import Language, tag_is_valid

    return Language.get(code).maximize().script if tag_is_valid(code) else None


@lru_cache(maxsize=256)
def language_name(code: str) -> str:
    """The English name of a language. A code without one is its own name, with one warning."""
    language = language_code(code)
    if language in _NAMES:
        return _NAMES[language]
    from langcodes import Language, tag_is_valid

    name = Language.get(language).language_name() if tag_is_valid(language) else "Unknown"
    if name.startswith("Unknown"):
        logger.warning("unknown language code %r: prompts use the code, and checks know no words of it", code)
        return code
    return name


def language_names(lp: str | None) -> tuple[str, str]:
    """The names of the source and the target language; "the source language" and so on without a pair. `OptionError`
    for what is not a pair."""
    if lp is None:
        return "the source language", "the target language"
    source, target = language_pair(lp)
    return language_name(source), language_name(target)


@lru_cache(maxsize=1)
def _identifier() -> Any:
    import numpy as np
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_pickled_model(MODEL_FILE)
    identifier.nb_ptc = np.asarray(identifier.nb_ptc, np.float32)
    return identifier


def _features(text: str) -> dict[int, int]:
    """Feature of the identifier -> how often the text has it, in order: `instance2fv`, in half its time."""
    identifier = _identifier()
    moves, state, states = identifier.tk_nextmove, 0, []
    for byte in text.encode("utf8", errors="surrogatepass"):
        state = moves[(state << 8) + byte]
        states.append(state)
    found: dict[int, int] = {}
    for state, times in Counter(states).items():
        for feature in identifier.tk_output.get(state, ()):
            found[feature] = found.get(feature, 0) + times
    return dict(sorted(found.items()))


def _likelihoods(text: str) -> dict[str, float]:
    """Language -> the logarithm of its probability, without a constant. A feature of the text that is there several
    times counts by its logarithm, so that no repeated word decides."""
    import numpy as np

    identifier, text = _identifier(), text[:_BEGINNING]
    counts = _features(text.lower() if text.isupper() else text)
    weights = np.log2(np.array([*counts.values()], np.float32) + 1)
    # A product of matrices would wake the threads of BLAS, which takes longer than the product.
    scores = np.einsum("f,fl->l", weights, identifier.nb_ptc[[*counts]] if counts else identifier.nb_ptc[:0])
    return dict(zip(identifier.nb_classes, (scores + identifier.nb_pc).tolist(), strict=True))


def _has_letters(text: str) -> bool:
    """Whether a text has enough letters that its language is told."""
    return len(text) >= FEWEST_LETTERS and sum(map(str.isalpha, text)) >= FEWEST_LETTERS


def language_of(text: str) -> str | None:
    """The code of the language of a text, up to those that are alike; None of a short one, or if it is not sure."""
    if not _has_letters(text):
        return None
    likelihoods = _likelihoods(text)
    found = max(likelihoods, key=likelihoods.__getitem__)
    second = max(score for code, score in likelihoods.items() if code != found and not alike(code, found))
    return found if likelihoods[found] - second >= _SURE else None


def other_language(text: str, code: str) -> str | None:
    """The code of the language of a text that is surely not in the language of this code; else None."""
    expected = language_code(code)
    if not _has_letters(text):
        return None
    likelihoods = _likelihoods(text)
    found = max(likelihoods, key=likelihoods.__getitem__)
    if expected not in likelihoods or likelihoods[found] - likelihoods[expected] < _SURE:
        return None
    return None if alike(found, expected) else found


def is_likelier(text: str, one: str, other: str) -> bool:
    """Whether a text of any length is probably in the first language and not in the second. For a language that cannot
    be identified, the likeliest that is not alike the other one is taken."""
    likelihoods = _likelihoods(text)
    best = [max(score for code, score in likelihoods.items() if not alike(code, known)) for known in (other, one)]
    first, second = likelihoods.get(one, best[0]), likelihoods.get(other, best[1])
    return first - second >= _LIKELIER and max(likelihoods.values()) - first <= _NEAR


def alike(one: str, other: str) -> bool:
    """Whether two language codes denote the same language, or languages that may be confused."""
    return one == other or any({one, other} <= group for group in _ALIKE)


def language_of_texts(texts: Iterable[str]) -> str:
    """The code of the language that the first texts are surely in; "" if they are short, or might be in another one."""
    text = "\n".join(islice(texts, _TEXTS))
    if not _has_letters(text):
        return ""
    first, second = sorted(_likelihoods(text).items(), key=lambda one: -one[1])[:2]
    return first[0] if first[1] - second[1] >= _SURE else ""


@lru_cache(maxsize=1024)
def likely_languages(text: str) -> tuple[str, ...]:
    """The codes of the languages that a text may be in, likeliest first; at most four. A script that only one language
    uses identifies it."""
    text = text[:_ENOUGH]
    if not text.isascii():
        for script, language in _SCRIPTS.items():
            if re.search(script, text):
                return (language,)
    if not any(map(str.isalpha, text)):
        return ()
    likelihoods = _likelihoods(text)
    best = sorted(_MANY_SPEAKERS & likelihoods.keys(), key=likelihoods.__getitem__, reverse=True)[:4]
    return tuple(one for one in best if likelihoods[best[0]] - likelihoods[one] < _UNSURE)


def _several_languages(texts: Sequence[str]) -> list[str]:
    """The languages that a tenth of the texts or more are surely in, if there are several, the most frequent first."""
    step = -(-len(texts) // _SAMPLED) or 1
    found = Counter(code for text in texts[::step] if (code := language_of(text)) is not None)
    codes = [code for code, count in found.most_common() if count >= _SEVERAL * found.total()]
    return codes if len(codes) > 1 and not all(alike(codes[0], code) for code in codes) else []


def language_note(sources: Iterable[str], translations: Iterable[str]) -> str:
    """The note for a user whose prompt could name the languages and does not, with the pair that the texts seem to
    have. The user decides, because it changes what a model answers."""
    note = "note: the prompt does not name the languages of the texts"
    sides = [list(dict.fromkeys(texts)) for texts in (sources, translations)]
    for side, texts in zip(("sources", "translations"), sides, strict=True):
        if several := _several_languages(texts):
            names = " and ".join(map(language_name, several))
            return f"{note}. The {side} look like {names}: score each language pair separately, with its lp="
    likelihoods = [_likelihoods("\n".join(texts)) for texts in sides]
    source, target = (max(one, key=one.__getitem__) for one in likelihoods)
    if source == target:
        return f"{note}; add them to the model's name, such as lp=en-de"
    names = f"{language_name(source)} and {language_name(target)}"
    return f"{note}. They look like {names}: add lp={source}-{target} to the model's name"
