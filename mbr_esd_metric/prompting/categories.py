"""Published MQM categories, in the words of the prompts."""

from __future__ import annotations

import re

from mbr_esd_metric.prompting.prompt import CATEGORIES

#: Second-level names of published MQM typologies -> the prompt's category. First-level names are found by themselves.
_PARENTS = {
    **dict.fromkeys(("mistranslation", "untranslated", "addition", "omission"), "accuracy"),
    **dict.fromkeys(("wrong term", "inconsistent use of terminology"), "terminology"),
    **dict.fromkeys(("grammar", "spelling", "punctuation", "register", "non fluent", "unintelligible"), "fluency"),
    **dict.fromkeys(("linguistic conventions", "character encoding"), "fluency"),
}
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_NOT_LETTERS = re.compile(r"[^a-z]+")


def answer_category(published: str | None) -> tuple[str, str]:
    """Category and sub-category, in the answer's vocabulary, of a published MQM category.

    >>> answer_category("Accuracy/Omission (Translation 2)")
    ('accuracy', 'omission')
    """
    names = [_NOT_LETTERS.sub(" ", part.lower()).strip() for part in _IN_BRACKETS.sub("", published or "").split("/")]
    top, sub = names[0], names[-1]
    if top.startswith("non translation"):
        return "non-translation", "non-translation"
    category = top if top in CATEGORIES else _PARENTS.get(top, "other")
    return category, sub or category
