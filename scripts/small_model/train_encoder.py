"""Trains the small model, an encoder that tags tokens, on the output of `training_set.py`.

    python scripts/small_model/train_encoder.py BASE training_set.npz --minutes 60 -o run

BASE is a folder with a `BertModel` and its tokenizer, or with a model trained by this script; for several folders,
training starts with the mean of their weights. The input is ``<s> translation </s> source </s>``. The model has six
outputs per token: the logits of ok, minor and major (for source tokens: omissions), and three auxiliary outputs. The
means of two of these over the tokens of a pair predict its quality, ``-log(1 + MQM penalty)``, and its rating, a direct
assessment normalised per language pair; the third predicts whether a post-edit changes the token.

Translations of one source are in the same batch. For each two of them, quality and rating have a logistic ranking loss,
whose target is the difference of human ratings, standardised per rater, or of the scores of a teacher, standardised per
source, or a constant.

`--shares` sets the sampling shares of the kinds of rows. A reference-based teacher is trained with the same command, on
a file with references instead of sources, and only the kind `teacher`.

The learning rate decreases with time. A checkpoint is written every five minutes, from which the same command resumes.
The final model is in `model/`, for `engine=tagger`. A GPU processes thousands of rows per second, a CPU core some tens.
On CPUs, two runs with one thread each, whose weights are averaged, are faster than one with two threads; batches of
2,000 tokens learn more per row than larger ones; and the lower layers can be frozen (`--frozen`).
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from encoder_folder import weights_of
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, smooth_l1_loss

from mbr_esd_metric.generation.pretrained import bf16_works

LABELS = ("ok", "minor", "major", "quality", "rating", "edited")
#: Sampling shares of the rows, by the kind of their group (`--shares`).
SHARES = {
    "mqm": 0.20, "joined": 0.02, "teacher": 0.30, "other": 0.03, "minimal": 0.08, "contrast": 0.28, "rated": 0.02,
    "spoilt": 0.04, "planted": 0.03,
}  # fmt: skip
#: The label of tokens without a loss, as in the file.
IGNORED = -100
#: The maximum number of translations of a source in a batch.
_BESIDE = 8
#: The scale of differences of quality and rating in the ranking loss, and the layer-wise decay of the learning rate.
_SCALE, _FALL = 3.0, 0.9
#: Token ids of <s>, </s> and padding.
_BEGIN, _END, _PAD = 0, 2, 1


class Rows:
    """Samples the rows of a file, and collates batches on the device.

    Args:
        data: the arrays of the file.
        tokens: the maximum number of tokens per batch, including padding.
        shares: the sampling shares of the rows, by the kind of their group.
        longest: the maximum number of tokens of a row.
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        tokens: int,
        device: str,
        shares: Mapping[str, float] = SHARES,
        longest: float = math.inf,
    ) -> None:
        self.most, self.device = tokens, device
        starts = np.concatenate([[0], data["text_ends"]])
        sizes = np.diff(starts)
        texts = [data["translation"], data["source"]]
        self.lengths = 3 + sizes[texts[0]] + sizes[texts[1]]
        #: For each row: the start of its labels, and the first tokens and the sizes of its two texts.
        label_starts = np.concatenate([[0], np.cumsum(self.lengths - 3)])
        layout = np.stack([label_starts[:-1], starts[texts[0]], sizes[texts[0]], starts[texts[1]], sizes[texts[1]]], 1)
        labels, edited = np.zeros(label_starts[-1], np.int8), np.full(label_starts[-1], -1, np.int8)
        for row in np.flatnonzero(data["edited"]):
            edited[layout[row, 0] : layout[row, 0] + layout[row, 2]] = 0
        for row, side, start, end, label in data["spans"].tolist():
            at = layout[row, 0] + (layout[row, 2] if side == 1 else 0)
            (edited if side == 2 else labels)[at + start : at + end] = label
        for text, at in zip(texts, (layout[:, 0], layout[:, 0] + layout[:, 2]), strict=True):
            before = np.cumsum(sizes[text]) - sizes[text]
            inside = np.arange(sizes[text].sum())
            blank = data["blank"][np.repeat(starts[text] - before, sizes[text]) + inside]
            places = (np.repeat(at - before, sizes[text]) + inside)[blank]
            labels[places], edited[places] = IGNORED, -1
        kept = {"layout": layout, "labels": labels, "edited": edited}
        kept |= {name: data[name] for name in ("tokens", "sides", "order", "quality", "rating")}
        self.arrays = {name: torch.from_numpy(values).to(device) for name, values in kept.items()}
        self.known = ~np.isnan(data["order"])
        #: For each group: the rows of its translations.
        self.groups: list[list[list[int]]] = []
        for start, end in pairwise([0, *data["group_ends"].tolist()]):
            of: dict[int, list[int]] = defaultdict(list)
            for row, member in enumerate(data["member"][start:end].tolist(), start):
                if self.lengths[row] <= longest:
                    of[member].append(row)
            self.groups.append(list(of.values()))
        some = np.array([bool(of) for of in self.groups])
        numbers = [np.flatnonzero(some & (data["kind"] == number)) for number in range(len(data["kinds"]))]
        self.kinds = [(some, np.cumsum(data["weight"][some])) for some in numbers]
        drawn = [np.mean([min(len(self.groups[g]), _BESIDE) for g in some] or np.inf) for some in numbers]
        chances = np.array([shares.get(kind, 0.0) for kind in data["kinds"].tolist()]) / np.array(drawn)
        self.chances: list[float] = (chances / chances.sum()).tolist()

    def draw(self, chance: random.Random) -> list[int]:
        """The rows sampled from a group: one row for each of some of its translations."""
        of, below = chance.choices(self.kinds, self.chances)[0]
        translations = self.groups[of[np.searchsorted(below, chance.random() * below[-1])]]
        return [chance.choice(rows) for rows in chance.sample(translations, min(_BESIDE, len(translations)))]

    def batch(self, groups: Sequence[Sequence[int]]) -> dict[str, Any]:
        """The tensors of a batch. `ids`, `types`, `labels`, `weights` and `edited` have shape (rows, tokens); `pairs`
        are the indices of two rows of a group with a known order, shape (pairs, 2)."""
        rows, arrays = [row for group in groups for row in group], self.arrays
        at = torch.tensor(rows, device=self.device)
        begin, first, size, second, size_of_source = arrays["layout"][at].T[:, :, None]
        place = torch.arange(-(-int(self.lengths[rows].max()) // 8) * 8, device=self.device)[None]
        types = place.gt(size + 1) & place.lt(size + size_of_source + 3)
        of_translation, of_source = place.gt(0) & place.le(size), types & place.lt(size + size_of_source + 2)
        of_text = of_translation | of_source
        number = torch.where(of_translation, first + place - 1, second + place - size - 2)
        ids = arrays["tokens"][number.where(of_text, 0)].long()
        ends = torch.where(place.eq(size + 1) | place.eq(size + size_of_source + 2), _END, _PAD)
        ids = ids.where(of_text, ends.where(place.ne(0), _BEGIN))
        number = (begin + place - 1 - of_source.long()).where(of_text, 0)
        labels = arrays["labels"][number].long().where(of_text, IGNORED)
        edited = arrays["edited"][number].where(of_translation, -1)
        weights = torch.where(of_source, arrays["sides"][at, 1:], arrays["sides"][at, :1])
        pairs, before = [], 0
        for group in groups:
            known = [i for i, row in enumerate(group, before) if self.known[row]]
            pairs += [(i, j) for n, i in enumerate(known) for j in known[n + 1 :]]
            before += len(group)
        weights = weights.where(labels.ne(IGNORED), 0.0)
        made = {"ids": ids, "types": types.long(), "labels": labels, "edited": edited, "weights": weights}
        made["pairs"] = torch.tensor(pairs, dtype=torch.long, device=self.device).view(-1, 2)
        return made | {name: arrays[name][at] for name in ("order", "quality", "rating")}

    def batches(self, chance: random.Random) -> Iterator[dict[str, Any]]:
        """An infinite iterator of batches of rows with similar length; groups are not split."""
        while True:
            drawn = [self.draw(chance) for _ in range(max(50, self.most // 30))]
            drawn.sort(key=lambda group: int(self.lengths[group].max()))
            made: list[list[list[int]]] = [[]]
            for group in drawn:
                size = sum(map(len, made[-1])) + len(group)
                if made[-1] and size * int(self.lengths[group].max()) > self.most:
                    made.append([])
                made[-1].append(group)
            chance.shuffle(made)
            yield from map(self.batch, made)


class Trainer:
    """The model and its optimizer.

    Args:
        models: folders, whose mean weights are the initial weights.
        rate: the maximum learning rate.
        tags: the weight of the tag loss.
        frozen: the number of frozen layers, from the bottom. Word embeddings are always frozen; the others too if
            layers are.
    """

    def __init__(self, models: Sequence[Path], rate: float, device: str, tags: float = 1.0, frozen: int = 0) -> None:
        every = [_loaded(folder) for folder in models]
        self.model = every[0].train().to(device)
        with torch.no_grad():
            for same in zip(*(model.parameters() for model in every), strict=True):
                same[0].copy_(torch.stack([one.to(device) for one in same]).mean(0))
        layers, groups = self.model.config.num_hidden_layers, defaultdict[tuple[float, float], list[Any]](list)
        for name, parameter in self.model.named_parameters():
            depth = int(name.split("layer.")[1].split(".")[0]) + 1 if "layer." in name else 0
            share = 3.0 if name.startswith("classifier") else _FALL ** (layers - depth)
            fixed = "word_embeddings" in name or (depth <= frozen and frozen and not name.startswith("classifier"))
            if not fixed:
                groups[share, 0.01 if parameter.dim() > 1 else 0.0].append(parameter)
            parameter.requires_grad_(not fixed)
        rates = [{"params": some, "share": share, "weight_decay": decay} for (share, decay), some in groups.items()]
        self.optimizer = torch.optim.AdamW(rates, lr=rate, betas=(0.9, 0.98), fused=device == "cuda")
        self.parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        self.rate, self.device, self.tags, self.updates = rate, device, tags, 0
        #: On processors without bfloat16 instructions, bfloat16 is a hundred times slower than float32.
        self.half = device != "cpu" or bf16_works(device)
        self.losses: dict[str, list[Any]] = defaultdict(list)

    def update(self, batch: Mapping[str, Any], share: float) -> None:
        """One update; `share` is the elapsed share of the time."""
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.half):
            parts = self.losses_of(batch)
            sum(parts.values()).backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        now = self.rate * min(1.0, (self.updates + 1) / 150) * max(0.0, 1 - share)
        for group in self.optimizer.param_groups:
            group["lr"] = now * group["share"]
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.updates += 1
        for name, value in parts.items():
            self.losses[name].append(value.detach())

    def losses_of(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        ids, mask = batch["ids"], batch["ids"].ne(_PAD)
        logits = self.model(ids, attention_mask=mask.long(), token_type_ids=batch["types"]).logits.float()
        each = cross_entropy(logits[..., :3].transpose(1, 2), batch["labels"], ignore_index=IGNORED, reduction="none")
        parts = {"tags": self.tags * (each * batch["weights"]).sum() / batch["weights"].gt(0).sum().clamp(min=1)}
        pooled = (logits[..., 3:5] * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        for i, name in enumerate(("quality", "rating")):
            known = ~batch[name].isnan()
            error = smooth_l1_loss(pooled[:, i], batch[name].nan_to_num(), reduction="none")
            parts[name] = 0.5 * (error * known).sum() / known.sum().clamp(min=1)
        known = batch["edited"].ge(0)
        target = batch["edited"].clamp(min=0).float()
        error = binary_cross_entropy_with_logits(logits[..., 5], target, reduction="none")
        parts["edited"] = 0.5 * (error * known).sum() / known.sum().clamp(min=1)
        if len(batch["pairs"]):
            first, second = batch["pairs"].unbind(1)
            likely = torch.sigmoid(batch["order"][first] - batch["order"][second])[:, None].expand(-1, 2)
            parts["order"] = binary_cross_entropy_with_logits(_SCALE * (pooled[first] - pooled[second]), likely)
        return parts

    def store(self, path: Path, passed: float) -> None:
        """Write a checkpoint atomically; `passed` are the elapsed seconds."""
        state = {"parameters": self.parameters, "optimizer": self.optimizer.state_dict()}
        torch.save(state | {"updates": self.updates, "passed": passed}, path.with_suffix(".unfinished"))
        path.with_suffix(".unfinished").rename(path)

    def restore(self, path: Path) -> float:
        """Load a checkpoint. Returns the elapsed seconds."""
        state = torch.load(path, map_location=self.device)
        with torch.no_grad():
            for parameter, known in zip(self.parameters, state["parameters"], strict=True):
                parameter.copy_(known)
        self.optimizer.load_state_dict(state["optimizer"])
        self.updates = state["updates"]
        return float(state["passed"])

    def save(self, folder: Path, base: Path) -> None:
        """Write a model folder for `engine=tagger`."""
        self.model.save_pretrained(folder)
        for path in [*base.glob("tokenizer*"), *base.glob("special_tokens*")]:
            shutil.copy(path, folder)


def _loaded(folder: Path) -> Any:
    """A model with our labels. Eager attention is the fastest for short texts on CPUs."""
    from transformers import BertForTokenClassification

    return BertForTokenClassification.from_pretrained(
        folder,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        label2id={name: number for number, name in enumerate(LABELS)},
        attn_implementation="eager",
    )


def train(args: argparse.Namespace) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(args.seed)
    chance = random.Random(args.seed)
    shares = weights_of(args.shares) if args.shares else SHARES
    batches = Rows(dict(np.load(args.rows)), args.tokens, device, shares, args.longest).batches(chance)
    trainer = Trainer(args.base, args.rate, device, args.tags, args.frozen)
    checkpoint, read, began = args.output / "state.pt", 0, time.time()
    if checkpoint.is_file():
        began -= trainer.restore(checkpoint)
        chance.seed(args.seed + trainer.updates)
    saved = said = time.time()
    rows_said = 0
    args.output.mkdir(parents=True, exist_ok=True)
    print(f"{device}, {'bfloat16' if trainer.half else 'float32'}, {torch.get_num_threads()} threads", flush=True)
    while (share := (time.time() - began) / (60 * args.minutes)) < 1:
        batch = next(batches)
        trainer.update(batch, share)
        read += len(batch["ids"])
        if (passed := time.time() - said) > 60:
            speed = (read - rows_said) / passed
            said, rows_said = time.time(), read
            losses = ", ".join(f"{n} {float(torch.stack(v).mean()):.3f}" for n, v in sorted(trainer.losses.items()))
            seconds = f"{time.time() - began:.0f} s, {speed:.0f} rows a second"
            print(f"{trainer.updates} updates, {read} rows, {seconds}: {losses}", flush=True)
            trainer.losses.clear()
        if time.time() - saved > 300:
            trainer.store(checkpoint, time.time() - began)
            saved = time.time()
    trainer.save(args.output / "model", args.base[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path, nargs="+")
    parser.add_argument("rows", type=Path)
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--rate", type=float, default=1.5e-4, help="maximum learning rate (default: %(default)s)")
    parser.add_argument("--tokens", type=int, default=2_000, help="maximum per batch (default: %(default)s)")
    parser.add_argument("--longest", type=int, default=256, help="maximum tokens per row (default: %(default)s)")
    parser.add_argument(
        "--shares",
        nargs="+",
        metavar="KIND=SHARE",
        help="sampling shares of kinds of rows",
    )
    parser.add_argument("--tags", type=float, default=1.0, help="weight of the tag loss (default: %(default)s)")
    parser.add_argument("--frozen", type=int, default=0, help="number of frozen lower layers (default: none)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", required=True, type=Path)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
