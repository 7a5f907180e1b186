"""`format=json-omissions`: the error list, and what the translation leaves out with the words of the source."""

from __future__ import annotations

import json

from mbr_esd_metric.elicit.formats.json import JsonFormat
from mbr_esd_metric.elicit.grammar import STRING_CHARACTERS, output_grammar, output_schema
from mbr_esd_metric.elicit.grounded import grounded_spans, in_json
from mbr_esd_metric.elicit.prompt import OMISSION_TEMPLATES


class JsonOmissionsFormat(JsonFormat):
    """As `json`, and what the translation leaves out: ``{"omitted_span": words of the source, "category": ...}``."""

    name = "json-omissions"
    templates = OMISSION_TEMPLATES
    schema = json.dumps(output_schema(omissions=True))
    both_sides = True

    def grammar(self, translation: str, grounded: bool = False, source: str = "") -> str:
        if grounded:
            return output_grammar(grounded_spans(translation, in_json), grounded_spans(source, in_json))
        return output_grammar(omitted_span=STRING_CHARACTERS + "+")
