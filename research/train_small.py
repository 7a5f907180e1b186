"""Trains the small model's adapter on annotations of people and on translations spoilt with exact labels.

    python research/train_small.py --pairs pairs.jsonl --human 2021_en-de.tsv.gz=4 mlqe_en-de.tsv=1.2 \
        --init ADAPTER --minutes 60 --seed 1 -o run

Pairs come from `clean_pairs.py`, used in both directions; after = stands how often a file is drawn from. An example is
a walk of `format=marked-omissions` (see `distill.walks`): a person's annotation, a planted error (`distill.planted`),
or a translation that is spoilt as a whole (`spoilt.py`); the two latter mostly beside their unspoilt originals.
Of a person's annotation the source is walked in three of ten cases, with no word missing. Words of which nothing is
known have no loss. The loss is the mean cross-entropy over the marks of a batch of about 900 tokens, AdamW on the LoRA
weights alone, and the learning rate falls over the last part of the time, not of the updates: the run ends when it is
to end. The marks that decide can weigh more (`--first`): the first mark of each text and of each place that is missing
or wrong, in a spoilt translation and at the same place of its original, and so where an error is planted.

What a model has learnt from people is soon lost among spoilt translations. So the marks of a person's translation can
be learnt from another adapter as well (`--teacher`): the target is then ``q p_teacher + (1 - q) p_person``, where q is
`--trust`, and p_person is 1 for the mark that the person gave. Some examples are two or more joined (`--joined`), so
that long texts occur.

Every 30 updates a checkpoint is written, whole or not at all; the same command goes on from the last one, also after a
kill. In the end the adapter is in `adapter/`. `mean_adapters.py` makes one adapter of several runs.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clean_pairs import read_pairs
from running import run
from spoilt import KINDS, Pair, Place, Spoiler, join

from mbr_esd_metric.adapters.mqm_tsv import read_mqm
from mbr_esd_metric.core.annotation import Annotation, ErrorSpan
from mbr_esd_metric.distill.planted import Planter
from mbr_esd_metric.distill.supervision import HumanAnnotation
from mbr_esd_metric.distill.walks import NO_LOSS, EncodedWalk
from mbr_esd_metric.elicit.formats import get_format
from mbr_esd_metric.elicit.formats.marked import words_of
from mbr_esd_metric.elicit.prompt import load_prompt

#: How often a language pair, and a kind, is drawn from; 1 where nothing stands.
PAIR_WEIGHTS = {
    "en-de": 2.5,
    "ru-en": 1.2,
    "en-zh": 1.2,
    "zh-en": 1.2,
    "ro-en": 0.8,
    "et-en": 0.8,
    "en-ro": 0.6,
    "en-et": 0.5,
}
KIND_WEIGHTS = {
    "segment": 3.5, "clause": 4.0, "cut": 4.0, "words": 1.0, "copied": 2.0, "half_copied": 0.8, "unrelated": 1.2,
    "half_unrelated": 0.8, "twice": 1.6, "shuffled": 0.6,
}  # fmt: skip
_JOINED = ("segment", "half_copied", "half_unrelated", "twice")
_TOKENS, _LONG, _MOST = 900, 420, 1000
#: Share of the examples longer than `_LONG` tokens that are kept.
_KEPT = 0.35
_SAVE = 30
_STATE = "state.pt"


@dataclass(frozen=True)
class Row:
    """An example.

    Attributes:
        kind: how the translation is spoilt, "good" for the original of a spoilt one, "human", "planted".
        source, translation: the texts.
        errors: of the translation.
        missing: what of the source is missing.
        unsure: what of the source may be missing or not.
        both: whether the source is walked.
        decisive: places of the translation and of the source whose first marks decide.
    """

    kind: str
    source: str
    translation: str
    errors: Annotation
    missing: tuple[Place, ...] = ()
    unsure: tuple[Place, ...] = ()
    both: bool = True
    decisive: tuple[tuple[Place, ...], tuple[Place, ...]] = ((), ())


def _runs(places: Sequence[Place]) -> list[Place]:
    """Neighbouring words as one place."""
    found: list[Place] = []
    for start, end in sorted(places):
        if found and start - found[-1][1] <= 1:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


class Stream:
    """Draws examples; what it draws depends on the seed alone."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.chance = random.Random(args.seed)
        self._shares = args.share_human, args.share_planted, args.joined
        self._pairs: dict[str, list[Pair]] = {}
        for one in read_pairs(args.pairs):
            for pair in (one, one.swapped()):
                self._pairs.setdefault(pair.lp, []).append(pair)
        self._spoiler = Spoiler([pair for some in self._pairs.values() for pair in some])
        self._human: dict[str, tuple[list[HumanAnnotation], list[HumanAnnotation]]] = {}
        self._weights: dict[str, float] = {}
        clean: list[HumanAnnotation] = []
        for named in args.human:
            path, _, weight = named.rpartition("=")
            fine, wrong = self._human.setdefault(path, ([], []))
            self._weights[path] = float(weight)
            for r in read_mqm(path):
                short = 0 < len(r.target) <= 400 and len(r.source) <= 520 and len(r.annotation) <= 6
                if short and (r.annotation or not r.errors) and all(s.end - s.start <= 80 for s in r.annotation):
                    item = HumanAnnotation(r.source, r.target, r.lp or "", r.annotation)
                    (wrong if r.annotation else fine).append(item)
            clean += fine if "mlqe" not in path else []
        for lp in ("en-de", "de-en", "ru-en", "en-ru"):
            for pair in self._pairs.get(lp, ()):
                clean.append(HumanAnnotation(pair.source, pair.translation, lp, Annotation()))
        self._clean, self._planter = clean, Planter(clean)

    def draw(self) -> list[Row]:
        """An example, or one and its unspoilt original."""
        chance, which = self.chance, self.chance.random()
        if which < self._shares[0]:
            fine, wrong = self._human[chance.choices(list(self._weights), list(self._weights.values()))[0]]
            item = chance.choice(wrong if wrong and (chance.random() < 0.6 or not fine) else fine)
            while chance.random() < self._shares[2]:
                item = _behind(item, chance.choice(wrong if wrong and (chance.random() < 0.6 or not fine) else fine))
            return [Row("human", item.source, item.translation, item.annotation, both=chance.random() < 0.4)]
        if which < self._shares[0] + self._shares[1] / 2:
            item = chance.choice(self._clean)
            bad, both = self._planter.plant(item, chance), chance.random() < 0.35
            if bad is None or any(span.category == "planted/omission" for span in bad.annotation):
                return []
            [there] = bad.annotation
            at: tuple[Place, ...] = ((there.start, there.end),)
            rows = [Row("planted", bad.source, bad.translation, bad.annotation, both=both, decisive=(at, ()))]
            if chance.random() < 0.8:
                rows.append(Row("good", item.source, item.translation, Annotation(), both=both, decisive=(at, ())))
            return rows
        kind = chance.choices(list(KINDS), [KIND_WEIGHTS.get(kind, 1.0) for kind in KINDS])[0]
        lps = list(self._pairs)
        pair = chance.choice(self._pairs[chance.choices(lps, [PAIR_WEIGHTS.get(lp, 1.0) for lp in lps])[0]])
        if len(pair.source) > (110 if kind in _JOINED else 220) and chance.random() > 0.1:
            return []
        while chance.random() < self._shares[2]:
            pair = pair.joined(self._spoiler.another(pair, chance))
        spoilt = self._spoiler.spoil(pair, kind, chance)
        if spoilt is None:
            return []
        errors = Annotation(ErrorSpan(start, end, "major") for start, end in spoilt.wrong)
        good, whole = spoilt.good, ((0, 1),)
        lost = (*whole, *_runs(spoilt.missing))
        rows = [
            Row(
                kind,
                good.source,
                spoilt.translation,
                errors,
                spoilt.missing,
                spoilt.unsure,
                decisive=((*whole, *spoilt.wrong), lost),
            )
        ]
        if chance.random() < 0.85:
            rows.append(Row("good", good.source, good.translation, Annotation(), decisive=(whole, lost)))
        return rows


def _behind(first: HumanAnnotation, second: HumanAnnotation) -> HumanAnnotation:
    """Two annotated translations as one."""
    source, translation = join(first.source, second.source), join(first.translation, second.translation)
    by = len(translation) - len(second.translation)
    moved = [replace(span, start=span.start + by, end=span.end + by) for span in second.annotation]
    return HumanAnnotation(source, translation, first.lp, Annotation([*first.annotation, *moved]))


@dataclass(frozen=True)
class Drawn:
    """An example in tokens.

    Attributes:
        kind: of its row.
        walk: the tokens.
        silent: places of its tokens without loss.
        decisive: places that decide.
        taught: the places of the translation's marks, which a teacher may say something of.
    """

    kind: str
    walk: EncodedWalk
    silent: tuple[int, ...]
    decisive: tuple[int, ...]
    taught: tuple[int, ...] = ()


def drawn(walk: EncodedWalk, row: Row) -> Drawn:
    """Where the marks of `row` stand in its walk, of which nothing is known or much depends."""
    texts = [row.translation, row.source] if row.both else [row.translation]
    chosen, silent, decisive = iter(walk.row.chosen), [], set()
    for number, text in enumerate(texts):
        words = words_of(text)
        places = [next(chosen) for _ in words]
        for start, end in row.unsure if number else ():
            silent += [at for at, word in zip(places, words, strict=True) if start < word.end and end > word.start]
        for start, end in row.decisive[number]:
            inside = [at for at, word in zip(places, words, strict=True) if start < word.end and end > word.start]
            decisive.update(inside[:1])
    taught = walk.row.chosen[: len(words_of(row.translation))] if row.kind == "human" else ()
    return Drawn(row.kind, walk, tuple(silent), tuple(sorted(decisive)), taught)


def trainable(base: str, adapter: str, bf16: bool) -> Any:
    """A model with an adapter that is trained further; frozen weights in bfloat16 where that is fast."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    from mbr_esd_metric.generation.pretrained import quiet_peft, wait_passively

    wait_passively()
    # On processors, PyTorch's fused attention is slower than plain products (7.2 s for a step, against 4.5 s).
    model = AutoModelForCausalLM.from_pretrained(
        base, dtype=torch.bfloat16 if bf16 else torch.float32, attn_implementation="eager"
    )
    with quiet_peft():
        return PeftModel.from_pretrained(model, adapter, is_trainable=True)


class Trainer:
    """The model, its tokens, and its updates."""

    def __init__(
        self, base: str, adapter: str, first: float = 1.0, teacher: str | None = None, trust: float = 0.0
    ) -> None:
        import torch
        from transformers import AutoTokenizer

        from mbr_esd_metric.distill.walks import WalkCollator
        from mbr_esd_metric.generation.embedded import EMBEDDED, embedded_weights
        from mbr_esd_metric.generation.pretrained import bf16_works
        from mbr_esd_metric.generation.walk_tokens import WalkTokenizer

        base = str(embedded_weights(base)) if base in EMBEDDED else base
        tokenizer = AutoTokenizer.from_pretrained(base)
        self.bf16 = bf16_works("cpu")
        self.model = trainable(base, adapter, self.bf16)
        self.teacher = trainable(base, teacher, self.bf16).merge_and_unload() if teacher else None
        self.walks, self.first, self.trust = WalkTokenizer(tokenizer), first, trust
        self.collator = WalkCollator(self.model.get_base_model(), self.walks, tokenizer.pad_token_id)
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.parameters, weight_decay=0.0)
        self.losses: dict[str, list[float]] = {}

    def encoded(self, row: Row) -> Drawn | None:
        """The walk of an example in tokens."""
        from mbr_esd_metric.distill.walks import encode_walk

        answers = get_format("marked-omissions" if row.both else "marked")
        source = [ErrorSpan(start, end, "major", side="source") for start, end in row.missing]
        answer, _ = answers.answer(Annotation([*row.errors, *source]), row.translation, row.source)
        walk = answers.walk(load_prompt("v1", answers.templates), row.source, row.translation)
        if walk is None:
            return None
        return drawn(encode_walk(walk, answer, self.walks), row)

    def update(self, batch: Sequence[Drawn], rate: float) -> float:
        """One step; returns the loss, and keeps that of each kind."""
        import torch

        from mbr_esd_metric.distill.walks import choice_distributions

        with self.model.disable_adapter(), torch.no_grad():
            rows = self.collator.measured([one.walk for one in batch])
        collated = self.collator.collated(rows)
        for number, one in enumerate(batch):
            collated["labels"][number, list(one.silent)] = NO_LOSS
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            logprobs, chosen, wanted = choice_distributions(self.model, collated)
        weights, numbers = torch.ones(chosen.shape), torch.zeros(chosen.shape, dtype=torch.long)
        for number, one in enumerate(batch):
            weights[number, [place - 1 for place in one.decisive]] = self.first
            numbers[number] = number
        targets = torch.nn.functional.one_hot(wanted, logprobs.shape[1]).to(logprobs)
        losses = -(self._taught(batch, collated, chosen, targets) * logprobs).sum(1)
        loss = (weights[chosen] * losses).sum() / weights[chosen].sum()
        for number, one in enumerate(batch):
            of, its = self.losses.setdefault(one.kind, [0.0, 0]), losses.detach()[numbers[chosen] == number]
            of[0] += float(its.sum())
            of[1] += len(its)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(loss.detach())

    def _taught(self, batch: Sequence[Drawn], collated: Mapping[str, Any], chosen: Any, targets: Any) -> Any:
        """The targets (m, K), with what the teacher expects at the marks of people's translations."""
        import torch

        from mbr_esd_metric.distill.walks import choice_distributions

        those = [number for number, one in enumerate(batch) if one.taught]
        if self.teacher is None or not those:
            return targets
        end = max(batch[number].taught[-1] for number in those) + 1
        part = {name: collated[name][those, :end] for name in ("input_ids", "attention_mask")}
        labels = torch.full(part["input_ids"].shape, NO_LOSS)
        for row, number in enumerate(those):
            labels[row, list(batch[number].taught)] = collated["labels"][number, list(batch[number].taught)]
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.bf16):
            expected, _, _ = choice_distributions(
                self.teacher, {**part, "labels": labels, "choices": collated["choices"]}
            )
        places = torch.zeros(chosen.shape, dtype=torch.bool)
        for number in those:
            places[number, [place - 1 for place in batch[number].taught]] = True
        targets[places[chosen]] = self.trust * expected.exp() + (1 - self.trust) * targets[places[chosen]]
        return targets


def batches(stream: Stream, trainer: Trainer) -> Iterator[list[Drawn]]:
    """Batches of similar length, made of 64 examples at a time."""
    while True:
        found: list[Drawn] = []
        while len(found) < 64:
            for row in stream.draw():
                one = trainer.encoded(row)
                if one is None:
                    continue
                if one.walk.length <= _LONG or (one.walk.length < _MOST and stream.chance.random() < _KEPT):
                    found.append(one)
        found.sort(key=lambda one: one.walk.length)
        made: list[list[Drawn]] = [[]]
        for one in found:
            if made[-1] and (len(made[-1]) >= 8 or (len(made[-1]) + 1) * one.walk.length > _TOKENS):
                made.append([])
            made[-1].append(one)
        stream.chance.shuffle(made)
        yield from made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", required=True, help="clean pairs")
    parser.add_argument("--human", required=True, nargs="+", metavar="FILE=WEIGHT", help="annotations of people")
    parser.add_argument("--base", default="google/gemma-3-270m", help="base model (default: %(default)s)")
    parser.add_argument("--init", required=True, help="folder of the adapter to begin with")
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--rate", type=float, default=4e-4, help="highest learning rate (default: 4e-4)")
    parser.add_argument(
        "--first",
        type=float,
        default=1.0,
        help="weight of the first mark of a text, spoilt or its original (default: 1)",
    )
    parser.add_argument("--share-human", type=float, default=0.55, help="of draws (default: 0.55)")
    parser.add_argument("--share-planted", type=float, default=0.27, help="of draws, with originals (default: 0.27)")
    parser.add_argument("--joined", type=float, default=0.0, help="how often another is joined (default: 0)")
    parser.add_argument("--teacher", help="folder of the adapter that teaches the marks of people's translations")
    parser.add_argument("--trust", type=float, default=0.7, help="share of the teacher in these (default: 0.7)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", required=True, type=Path)
    args = parser.parse_args()
    import torch

    last = last_checkpoint(args.output)
    trainer = Trainer(args.base, str(last) if last else args.init, args.first, args.teacher, args.trust)
    stream, updates, spent = Stream(args), 0, 0.0
    if last:
        known = torch.load(last / _STATE, weights_only=False)
        trainer.optimizer.load_state_dict(known["optimizer"])
        updates, spent = known["updates"], known["spent"]
        stream.chance.setstate(known["chance"])
        print(f"goes on after {updates} updates, {spent / 60:.0f} minutes", flush=True)
    began = time.monotonic() - spent

    def save() -> None:
        known = {"optimizer": trainer.optimizer.state_dict(), "chance": stream.chance.getstate()}
        known |= {"updates": updates, "spent": time.monotonic() - began}
        save_checkpoint(trainer.model, known, args.output)

    for batch in batches(stream, trainer):
        share = (time.monotonic() - began) / (60 * args.minutes)
        if share >= 1:
            break
        loss = trainer.update(batch, args.rate * min(1, (updates + 1) / 25, max(0.02, (1 - share) / 0.7)))
        updates += 1
        if updates % 10 == 0:
            print(f"{updates} updates, {share:.0%} of the time, loss {loss:.3f}", flush=True)
        if updates % _SAVE == 0:
            print(
                "  " + ", ".join(f"{kind} {a / max(1, n):.3f}" for kind, (a, n) in sorted(trainer.losses.items())),
                flush=True,
            )
            trainer.losses.clear()
            save()
    save()
    final = args.output / "adapter"
    shutil.rmtree(final, ignore_errors=True)
    final.mkdir()
    for path in (last_checkpoint(args.output) or final).glob("adapter_*"):
        shutil.copy(path, final)
    print(f"{final}: {updates} updates")


def save_checkpoint(model: Any, known: dict[str, Any], folder: Path) -> None:
    """Write the adapter and where the run stands to a folder of its own, then remove the one before."""
    import torch

    before, new, unfinished = last_checkpoint(folder), folder / f"after-{known['updates']}", folder / "unfinished"
    if before == new:
        return
    shutil.rmtree(unfinished, ignore_errors=True)
    model.save_pretrained(str(unfinished))
    torch.save(known, unfinished / _STATE)
    unfinished.rename(new)
    if before:
        shutil.rmtree(before)


def last_checkpoint(folder: Path) -> Path | None:
    """The folder of the last checkpoint."""
    found = [(int(path.name.removeprefix("after-")), path) for path in folder.glob("after-*")]
    return max(found)[1] if found else None


if __name__ == "__main__":
    run(main)
