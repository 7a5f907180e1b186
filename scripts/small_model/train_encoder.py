"""Trains the small model, an encoder that tags tokens, on annotations of people and on translations spoilt on purpose.

    python scripts/small_model/train_encoder.py BASE --mqm 2021_en-de.tsv.gz=3 2021_zh-en.tsv.gz=3 --mlqe MLQE-PE \
        --lp en-de et-en --teacher teacher_wmt22.tsv.gz --minimal planted_train.jsonl.gz --until 01:25 -o run

BASE is a folder with a `BertModel` and its tokenizer. The input is ``<s> translation </s> source </s>``. Six numbers
per token: logits of ok, minor and major (along the source: left out), and three more that help. Their means over the
tokens of a pair are its quality, ``-log(1 + MQM penalty)``, and its rating, a direct assessment, normalised for each
language pair; the last one says whether a person's post-edit changes the token. After = stands how often a file is
drawn from.

Translations of one source are drawn together, and so are minimal pairs and what is spoilt (`spoilt.py`, `planted.py`)
with its original. Of each two of them, quality and rating learn the order by a logistic loss: its target is the
difference of people's ratings, standardised for each rater, of a teacher's scores, standardised within the source, or a
constant. Embeddings stay as they are, and so many of the lower layers as one wants.

The learning rate depends on the time alone: the run ends when it is to end. Every five minutes a checkpoint is written,
whole or not at all; the same command goes on from it. Runs side by side (`--exchange`, each with a seed of its own)
take the mean of each other's weights every twenty updates. In the end the model is in `model/`, for `engine=tagger`.
"""

from __future__ import annotations

import argparse
import datetime
import math
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clean_pairs import pairs as clean_pairs
from planted import Planter
from spoilt import KINDS, Pair, Spoiler
from training_rows import Row, joined, read_minimal, read_mlqe, read_mqm_rows, read_teacher

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.distill.training_rows import HumanAnnotation

LABELS = ("ok", "minor", "major", "quality", "rating", "edited")
KIND_WEIGHTS = {
    "segment": 3.0, "clause": 3.5, "cut": 3.5, "words": 1.5, "copied": 1.2, "half_copied": 1.0, "unrelated": 1.0,
    "half_unrelated": 1.0, "language": 0.8, "twice": 1.2, "half_twice": 1.0, "shuffled": 0.8,
}  # fmt: skip
#: Quality and rating of translations that are wrong as a whole.
_WHOLE, _LOWEST = ("copied", "unrelated", "language", "shuffled"), (-3.2, -2.0)
_IGNORED = -100
_TOKENS, _MOST = 1500, 240
#: Factor of differences of quality and rating in the loss of the order, and of the rate, layer by layer downwards.
_SCALE, _FALL = 3.0, 0.9
#: What is drawn, and how many translations of a source at most.
DRAWS, _BESIDE = ("mqm", "teacher", "minimal", "rated", "spoilt", "planted"), 4


class Stream:
    """Draws examples; what it draws depends on the seed alone."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.chance = random.Random(args.seed)
        self.shares = args.shares
        self.mqm, clean = [], []
        for named in args.mqm:
            path, _, weight = named.rpartition("=")
            mqm, fine = read_mqm_rows(path, float(weight))
            self.mqm.append(mqm)
            clean += fine
        self.teacher, self.minimal = read_teacher(args.teacher), read_minimal(args.minimal)
        self.rated = {lp: read_mlqe(args.mlqe, lp, "train") for lp in args.lp}
        self.pairs: dict[str, list[Pair]] = defaultdict(list)
        for lp in args.lp:
            for one in clean_pairs(args.mlqe, lp, "train"):
                for pair in (one, one.swapped()):
                    self.pairs[pair.lp].append(pair)
        self.spoiler = Spoiler([pair for some in self.pairs.values() for pair in some])
        for lp, some in self.pairs.items():
            clean += [HumanAnnotation(pair.source, pair.translation, lp, Annotation()) for pair in some]
        self.clean = [one for one in clean if one.lp[-2:] in ("de", "en", "ru")]
        self.planter = Planter(self.clean)

    def draw(self) -> list[Row]:
        """Translations of one source, an original and what was made of it, or one row."""
        chance = self.chance
        kind = chance.choices(DRAWS, self.shares)[0]
        if kind == "mqm":
            mqm = chance.choices(self.mqm, [one.weight for one in self.mqm])[0]
            if mqm.documents and chance.random() < 0.15:
                rows = chance.choice(mqm.documents)
                at = chance.randrange(len(rows) - 1)
                row = rows[at]
                for other in rows[at + 1 : at + chance.choice((2, 2, 3))]:
                    row = joined(row, other)
                return [row]
            translations = chance.choice(mqm.sources)
            return [chance.choice(rows) for rows in chance.sample(translations, min(_BESIDE, len(translations)))]
        if kind == "teacher":
            translations = chance.choice(self.teacher)
            return [rows[0] for rows in chance.sample(translations, min(_BESIDE, len(translations)))]
        if kind == "minimal":
            return chance.choice(self.minimal[chance.choice(list(self.minimal))])
        if kind == "rated":
            return [chance.choice(chance.choice(list(self.rated.values())))]
        if kind == "planted":
            item = chance.choice(self.clean)
            bad = self.planter.plant(item, chance)
            if bad is None or any(span.category == "planted/omission" for span in bad.annotation):
                return []
            errors = tuple((s.start, s.end, 1 if s.severity == "minor" else 2) for s in bad.annotation)
            sides = (4.0, 1.0)
            return [
                Row(item.source, item.translation, sides=sides, order=0.0),
                Row(bad.source, bad.translation, errors, sides=sides, order=-3.0),
            ]
        how = chance.choices(list(KINDS), [KIND_WEIGHTS.get(kind, 1.0) for kind in KINDS])[0]
        pair = chance.choice(self.pairs[chance.choice(list(self.pairs))])
        if chance.random() < 0.15:
            pair = pair.joined(self.spoiler.another(pair, chance))
        spoilt = self.spoiler.spoil(pair, how, chance)
        if spoilt is None:
            return []
        good, (quality, rating) = spoilt.good, _LOWEST if how in _WHOLE else (None, None)
        errors = tuple((start, end, 2) for start, end in spoilt.wrong)
        return [
            Row(good.source, good.translation, order=0.0),
            Row(
                good.source,
                spoilt.translation,
                errors,
                spoilt.missing,
                spoilt.unsure,
                quality=quality,
                rating=rating,
                order=-5.0,
            ),
        ]


@dataclass(frozen=True)
class Encoded:
    """A row in tokens: numbers, sides, labels, weights, whether edited (NaN: unknown); and the number of its draw."""

    row: Row
    ids: list[int]
    types: list[int]
    labels: list[int]
    weights: list[float]
    edited: list[float]
    draw: int


def encoded(row: Row, encoding: Any, draw: int) -> Encoded:
    labels, weights, edited = [], [], []
    for side, (start, end) in zip(encoding.sequence_ids, encoding.offsets, strict=True):
        text = row.source if side else row.translation
        start += len(text[start:end]) - len(text[start:end].lstrip())
        label, change = _IGNORED, math.nan
        if side is not None and start < end:
            if side == 0:
                label = max((lab for a, b, lab in row.errors if a < end and b > start), default=0)
                if row.edited is not None:
                    change = float(any(a < end and b > start for a, b in row.edited))
            elif not any(a < end and b > start for a, b in row.unsure):
                label = 2 * any(a < end and b > start for a, b in row.missing)
        labels.append(label)
        weights.append(row.sides[side] if side is not None and label != _IGNORED else 0.0)
        edited.append(change)
    return Encoded(row, encoding.ids, encoding.type_ids, labels, weights, edited, draw)


def batches(stream: Stream, tokenizer: Any, groups: int = 96) -> Iterator[list[Encoded]]:
    """Batches of similar length; an original and what was made of it stay together."""
    while True:
        drawn = [rows for rows in (stream.draw() for _ in range(groups)) if rows]
        flat = [row for rows in drawn for row in rows]
        every = iter(tokenizer.encode_batch([(row.translation, row.source) for row in flat]))
        sets = [[encoded(row, next(every), n) for row in rows] for n, rows in enumerate(drawn)]
        sets = [some for some in sets if max(len(one.ids) for one in some) <= _MOST]
        sets.sort(key=lambda some: max(len(one.ids) for one in some))
        made: list[list[Encoded]] = [[]]
        for some in sets:
            if made[-1] and (len(made[-1]) + len(some)) * max(len(one.ids) for one in some) > _TOKENS:
                made.append([])
            made[-1] += some
        stream.chance.shuffle(made)
        yield from made


def padded(values: Sequence[Sequence[float]], fill: float, dtype: Any) -> Any:
    import torch

    width = max(map(len, values))
    return torch.tensor([[*one, *[fill] * (width - len(one))] for one in values], dtype=dtype)


class Trainer:
    """The model and its updates."""

    def __init__(self, base: Path, rate: float, frozen: int = 0) -> None:
        import torch
        from transformers import BertForTokenClassification

        self.model = BertForTokenClassification.from_pretrained(
            base,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            num_labels=len(LABELS),
            id2label=dict(enumerate(LABELS)),
            label2id={name: number for number, name in enumerate(LABELS)},
        ).train()
        self.pad = self.model.config.pad_token_id
        layers, groups = self.model.config.num_hidden_layers, []
        for name, parameter in self.model.named_parameters():
            depth = int(name.split("layer.")[1].split(".")[0]) + 1 if "layer." in name else 0
            if depth <= frozen and not name.startswith("classifier"):
                parameter.requires_grad_(False)
                continue
            share = 5.0 if name.startswith("classifier") else _FALL ** (layers - depth)
            decay = 0.01 if parameter.dim() > 1 else 0.0
            groups.append({"params": [parameter], "share": share, "weight_decay": decay})
        self.optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98))
        self.parameters = [group["params"][0] for group in self.optimizer.param_groups]
        self.seen: dict[str, int] = {}
        self.rate, self.updates = rate, 0
        self.losses: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])

    def update(self, batch: Sequence[Encoded], share: float) -> None:
        import torch
        from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, smooth_l1_loss

        ids = padded([one.ids for one in batch], self.pad, torch.long)
        mask = ids.ne(self.pad)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            types = padded([one.types for one in batch], 0, torch.long)
            logits = self.model(input_ids=ids, attention_mask=mask.long(), token_type_ids=types).logits
        logits = logits.float()
        labels = padded([one.labels for one in batch], _IGNORED, torch.long)
        weights = padded([one.weights for one in batch], 0.0, torch.float)
        each = cross_entropy(logits[..., :3].transpose(1, 2), labels, ignore_index=_IGNORED, reduction="none")
        parts = {"tags": (each * weights).sum() / weights.gt(0).sum().clamp(min=1)}
        pooled = (logits[..., 3:5] * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        for i, name in enumerate(("quality", "rating")):
            known = [k for k, one in enumerate(batch) if getattr(one.row, name) is not None]
            if known:
                target = torch.tensor([getattr(batch[k].row, name) for k in known])
                parts[name] = 0.5 * smooth_l1_loss(pooled[known, i], target)
        edited = padded([one.edited for one in batch], math.nan, torch.float)
        labelled = ~edited.isnan()
        if labelled.any():
            parts["edited"] = 0.5 * binary_cross_entropy_with_logits(logits[..., 5][labelled], edited[labelled])
        placed = [k for k, one in enumerate(batch) if one.row.order is not None]
        pairs = [(i, j) for n, i in enumerate(placed) for j in placed[n + 1 :] if batch[i].draw == batch[j].draw]
        if pairs:
            first, second = map(list, zip(*pairs, strict=True))
            order = torch.tensor([[one.row.order or 0.0] for one in batch])
            likely = torch.sigmoid(order[first] - order[second]).expand(-1, 2)
            difference = _SCALE * (pooled[first] - pooled[second])
            parts["order"] = binary_cross_entropy_with_logits(difference, likely)
        loss = sum(parts.values())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        now = self.rate * min(1.0, (self.updates + 1) / 30) * max(0.0, 1 - share)
        for group in self.optimizer.param_groups:
            group["lr"] = now * group["share"]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.updates += 1
        for name, value in parts.items():
            self.losses[name][0] += float(value.detach())
            self.losses[name][1] += 1

    def exchange(self, folder: Path, name: str) -> None:
        """Take the mean of these weights and of what other runs have written there since, and write the own ones."""
        import torch

        for path in sorted(folder.glob("*.pt")):
            if path.stem != name and (at := path.stat().st_mtime_ns) != self.seen.get(path.stem):
                self.seen[path.stem] = at
                torch._foreach_lerp_(self.parameters, torch.load(path), 0.5)
        torch.save([p.detach() for p in self.parameters], folder / f"{name}.unfinished")
        (folder / f"{name}.unfinished").rename(folder / f"{name}.pt")

    def state(self) -> dict[str, Any]:
        return {
            "parameters": [p.detach() for p in self.parameters],
            "optimizer": self.optimizer.state_dict(),
            "updates": self.updates,
        }

    def load(self, state: dict[str, Any]) -> None:
        import torch

        with torch.no_grad():
            for parameter, known in zip(self.parameters, state["parameters"], strict=True):
                parameter.copy_(known)
        self.updates = state["updates"]
        self.optimizer.load_state_dict(state["optimizer"])

    def save(self, folder: Path, base: Path) -> None:
        """Write a folder that `engine=tagger` reads."""
        self.model.save_pretrained(folder)
        for path in [*base.glob("tokenizer*"), *base.glob("special_tokens*")]:
            shutil.copy(path, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path)
    parser.add_argument("--mqm", required=True, nargs="+", metavar="FILE=WEIGHT", help="annotations of people")
    parser.add_argument("--mlqe", required=True, type=Path, help="folder of the unpacked archives of MLQE-PE")
    parser.add_argument("--lp", required=True, nargs="+", help="language pairs of MLQE-PE")
    parser.add_argument("--teacher", required=True, type=Path, help="translations with the score of a model")
    parser.add_argument("--minimal", required=True, type=Path, help="good translations and the same with one error")
    shares = (0.21, 0.30, 0.17, 0.14, 0.11, 0.07)
    parser.add_argument("--shares", nargs=6, type=float, default=shares, help=f"of the draws: {', '.join(DRAWS)}")
    parser.add_argument("--until", required=True, help="HH:MM when the run ends")
    parser.add_argument("--rate", type=float, default=3e-4, help="highest learning rate (default: %(default)s)")
    parser.add_argument(
        "--frozen", type=int, default=0, help="lower layers that stay as they are, besides the embeddings"
    )
    parser.add_argument("--exchange", type=Path, help="folder where runs side by side exchange their weights")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", required=True, type=Path)
    args = parser.parse_args()
    import torch
    from tokenizers import Tokenizer

    args.output.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)  # runs that exchange weights begin with the same ones
    tokenizer = Tokenizer.from_file(str(args.base / "tokenizer.json"))
    trainer, stream, began = Trainer(args.base, args.rate, args.frozen), Stream(args), time.time()
    end = datetime.datetime.combine(datetime.date.today(), datetime.time.fromisoformat(args.until))
    if end.timestamp() < began:
        end += datetime.timedelta(days=1)
    checkpoint = args.output / "state.pt"
    if checkpoint.is_file():
        state = torch.load(checkpoint, weights_only=False)
        trainer.load(state)
        began = state["began"]
        stream.chance.seed(args.seed + trainer.updates)
        print(f"goes on after {trainer.updates} updates", flush=True)
    saved, rows = time.time(), 0
    for batch in batches(stream, tokenizer):
        share = (time.time() - began) / (end.timestamp() - began)
        over = share >= 1
        if not over:
            trainer.update(batch, share)
            rows += len(batch)
            if args.exchange and trainer.updates % 20 == 0:
                with torch.no_grad():
                    trainer.exchange(args.exchange, str(args.seed))
        if over or time.time() - saved > 300:
            torch.save({**trainer.state(), "began": began}, args.output / "unfinished.pt")
            (args.output / "unfinished.pt").rename(checkpoint)
            saved = time.time()
        if over:
            break
        if trainer.updates % 20 == 0:
            losses = ", ".join(f"{name} {a / n:.3f}" for name, (a, n) in sorted(trainer.losses.items()))
            print(f"{trainer.updates} updates, {rows} rows, {share:.1%}: {losses}", flush=True)
            trainer.losses.clear()
    trainer.save(args.output / "model", args.base)
    print(f"{args.output / 'model'}: {trainer.updates} updates, {rows} rows")


if __name__ == "__main__":
    main()
