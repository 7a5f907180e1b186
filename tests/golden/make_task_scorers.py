"""Write task_scorers.json: what the scorers of two of WMT's tasks say of the made-up test set of tests/helpers.

The scorer of WMT23 also says it of that task's own test set, en-de, with gold as published (errors without characters
among it) and predictions of `marked_words`.

Needs their repositories, WMT-QE-Task/qe-eval-scripts and wmt-conference/wmt25-mteval, the task's table
2023_en-de_test.tsv.gz, and pandas:

    PYTHONPATH=. python tests/golden/make_task_scorers.py QE_EVAL_SCRIPTS COMMIT WMT25_MTEVAL COMMIT TABLE
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import pandas as pd

from mbr_esd_metric.adapters.qe_tsv import unquoted
from mbr_esd_metric.adapters.wmt import load_test_set
from mbr_esd_metric.adapters.wmt.submitting import write_submission
from tests.helpers.foreign import module_of
from tests.helpers.wmt_folder import marked_words, repeated_spans, write_folder

KEYS = ["doc_id", "segment_id", "source_lang", "target_lang", "set_id", "system_id", "domain_name", "method"]
SPANS = ["start_indices", "end_indices", "error_types"]


def of_the_task(wmt23: Any, table: Path, folder: Path) -> list[float]:
    """Precision, recall and F1 of `marked_words` on the task's own test set."""
    with gzip.open(table, "rt", encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    gold, predicted = ["header"], ["1", "1", "1"]
    for lp, number, _, quoted, *errors in rows:
        target = unquoted(quoted)
        gold.append("\t".join([lp, "gold", number, target, *errors]))
        found = marked_words(target.rstrip(), int(number))
        keys = [*found.key, *((at, at, severity) for at, severity in found.points)] or [(-1, -1, "no-error")]
        columns = [" ".join(map(str, column)) for column in zip(*keys, strict=True)]
        predicted.append("\t".join([lp, "m", number, target, *columns]))
    for name, lines in (("gold", gold), ("predicted", predicted)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    none: defaultdict[str, list[int]] = defaultdict(list)
    of_gold = wmt23.load_annotations(folder / "gold", none, True)
    recall, precision, f1 = wmt23.score_new(wmt23.load_annotations(folder / "predicted", none, False)[3], of_gold)[
        "en-de"
    ]
    return [precision, recall, f1]


def as_in_2023(table: Path, lp: str, gold: bool) -> Path:
    """A table of WMT25 in the form of WMT23's task: three lines on the model, or a header, then seven columns."""
    rows = pd.read_csv(table, sep="\t", keep_default_na=False, dtype=str)
    lines = ["\t".join(("lp", "method", "number", "translation", *SPANS))] if gold else ["0", "0", "1"]
    for number, row in enumerate(rows.to_dict("records")):
        lines.append("\t".join((lp, "m", str(number), row["hypothesis_segment"], *(row[name] for name in SPANS))))
    path = table.with_suffix(".txt")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def main() -> None:
    wmt23 = module_of(Path(sys.argv[1]) / "wmt23" / "task2_evaluate.py")
    wmt25 = module_of(Path(sys.argv[3]) / "scripts" / "scoring" / "task2" / "scoring_esa.py")
    found: dict[str, Any] = {"wmt23": {}, "wmt25": {}}
    with tempfile.TemporaryDirectory() as folder:
        found["wmt23"]["2023_en-de_test"] = of_the_task(wmt23, Path(sys.argv[5]), Path(folder))
        for lp in ("en-de", "zh-en"):
            write_folder(Path(folder), "made", lp)
            test_set = load_test_set(folder, "made", lp, reference="refA")
            paths = {metric: Path(folder) / f"{metric}.tsv" for metric in (None, "spans")}
            for metric, path in paths.items():
                write_submission(path, "wmt25-task2", [test_set], metric, rated=True)
            gold = wmt23.load_annotations(as_in_2023(paths[None], lp, True), defaultdict(list), True)
            predicted = wmt23.load_annotations(as_in_2023(paths["spans"], lp, False), defaultdict(list), False)[3]
            recall, precision, f1 = wmt23.score_new(predicted, gold)[lp]
            found["wmt23"][lp] = [precision, recall, f1]
            tables = [
                pd.read_csv(paths[m], sep="\t", keep_default_na=False, dtype={"segment_id": str})
                for m in (None, "spans")
            ]
            both = tables[1].merge(tables[0], on=KEYS, suffixes=("_pred", "_gold"))
            assert len(both) == len(tables[0])
            errors = {
                side: [
                    wmt25.get_error_list({name: row[f"{name}_{side}"] for name in SPANS}) for _, row in both.iterrows()
                ]
                for side in ("gold", "pred")
            }
            lengths = [len(text) for text in both["hypothesis_segment_gold"]]
            found["wmt25"][lp] = [float(v) for v in wmt25.get_char_f1(lengths, errors["gold"], errors["pred"])]
            odd = Path(folder) / "odd"
            odd.write_text(repeated_spans(paths["spans"].read_text(encoding="utf-8")), encoding="utf-8")
            rows = pd.read_csv(odd, sep="\t", keep_default_na=False, dtype={"segment_id": str})
            again = [wmt25.get_error_list(row) for _, row in rows.merge(tables[0][KEYS], on=KEYS).iterrows()]
            found["wmt25"][f"{lp} repeated"] = [float(v) for v in wmt25.get_char_f1(lengths, errors["gold"], again)]
    found["provenance"] = {
        "wmt23": f"https://github.com/WMT-QE-Task/qe-eval-scripts at {sys.argv[2]}",
        "wmt25": f"https://github.com/wmt-conference/wmt25-mteval at {sys.argv[4]}",
        "values": "precision, recall, F1",
    }
    path = Path(__file__).with_name("task_scorers.json")
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
