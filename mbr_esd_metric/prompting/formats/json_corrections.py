"""`format=json-corrections`: as `json`, each error with its correction and a reason.

The correction "" deletes the words. Its text, and the reason, are the model's own and never located.
"""

from __future__ import annotations

import json
import re

from mbr_esd_metric.core.annotation import ErrorSpan
from mbr_esd_metric.prompting.formats.json import JsonFormat, output_schema
from mbr_esd_metric.prompting.parse import JsonParser, Written

#: Characters that no text holds, or that XML and terminals must not see.
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class CorrectionsParser(JsonParser):
    """The reader of errors with corrections; one may lack them where nothing holds the model to the grammar."""

    more_keys = ("correction", "reason")

    def _error(self, item: object) -> Written:
        error = super()._error(item)
        correction, reason = (text and _UNFIT.sub("\ufffd", text) for text in (error.correction, error.reason))
        return error._replace(correction=correction, reason=reason)


class JsonCorrectionsFormat(JsonFormat):
    """The answer of `json`, each error with "correction" and "reason"."""

    name = "json-corrections"
    reader = CorrectionsParser
    schema = json.dumps(output_schema(more=CorrectionsParser.more_keys))
    corrections = True

    def usual_tokens(self, translation: str) -> int:
        return 100  # JSON's times 1.6, as three answers with one error in the demo model's tokens

    def more(self, span: ErrorSpan, words: str) -> dict[str, str]:
        """The correction, the words themselves where there is none, and the reason."""
        return {"correction": words if span.correction is None else span.correction, "reason": span.reason or ""}
