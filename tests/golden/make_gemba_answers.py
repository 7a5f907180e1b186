"""Write gemba_answers.json: real answers to GEMBA's question, each with the score of the package's own parser.

    PYTHONPATH=. python tests/golden/make_gemba_answers.py GEMBA_MQM_UTILS.py CANDIDATES.jsonl... > gemba_answers.json

The candidates are those of `mbr-esd sample` with `format=gemba-mqm&prompt=gemba-mqm&dialect=plain`. The first file of
the arguments is the module with `parse_mqm_answer`; it imports a debugger, which need not be there.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import sys
import types

from mbr_esd_metric.files.records import read_candidates
from tests.helpers.foreign import module_of


def main(module: str, *files: str) -> None:
    """Print answer -> score, each answer once."""
    sys.modules.setdefault("ipdb", types.ModuleType("ipdb"))
    parse = module_of(module).parse_mqm_answer
    given = {"normalize": False} if "normalize" in inspect.signature(parse).parameters else {}
    texts = dict.fromkeys(text for file in files for record in read_candidates(file) for text in record.texts)
    with contextlib.redirect_stdout(io.StringIO()):
        scores = {text: parse(text, **given) for text in texts}
    print(json.dumps(scores, ensure_ascii=False, indent=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
