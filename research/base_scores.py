"""The log-probability of translations to a small model's base, as a row of `rules_page.py`.

    python research/base_scores.py -s src.txt -t mt.txt -o base.jsonl [--mean mean.jsonl]

The first pass of `mbr-esd-small` measures how surprising each word is (`generation/surprisal.py`). The score is the sum
of ``log M(word | source, the words before)``, with `--mean` also the mean over the words. No adapter is used, so this
is what a model knows of a translation that has not learnt to judge any.
"""

from __future__ import annotations

import argparse
import json

from running import run

from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.files.streams import read_segments, write_whole
from mbr_esd_metric.metric.cards import load_card


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-s", "--sources", required=True)
    parser.add_argument("-t", "--translations", required=True)
    parser.add_argument("--model", default="mbr-esd-small")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--mean")
    args = parser.parse_args()
    import torch

    from mbr_esd_metric.elicit.prompt import load_prompt
    from mbr_esd_metric.generation.engine import EngineOptions
    from mbr_esd_metric.generation.pretrained import load_merged
    from mbr_esd_metric.generation.walking import Walker

    model, tokenizer = load_merged(EngineOptions(load_card(args.model).engine_options("transformers").model))
    walker, marked = Walker(model, model, tokenizer), get_format("marked")
    prompt = load_prompt("v1", marked.templates)
    sums, means = [], []
    for source, translation in zip(read_segments(args.sources), read_segments(args.translations), strict=True):
        walk = marked.walk(prompt, source, translation)
        with torch.inference_mode():
            surprisals = [0.0] if walk is None else walker.surprisals(walk)
        pair = {"src": source, "mt": translation}
        sums.append(json.dumps(pair | {"score": -sum(surprisals)}) + "\n")
        means.append(json.dumps(pair | {"score": -sum(surprisals) / len(surprisals)}) + "\n")
    write_whole(args.output, "".join(sums))
    if args.mean:
        write_whole(args.mean, "".join(means))


if __name__ == "__main__":
    run(main)
