"""A made-up panel: annotators that see the true errors of a translation more or less well."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mbr_esd_metric import Annotation, Candidate, ErrorSpan
from mbr_esd_metric.core.decision import CandidateColumns
from mbr_esd_metric.core.segment import Segment
from mbr_esd_metric.files.records import CandidateRecord

LENGTH = 60


@dataclass(frozen=True)
class PanelSegment:
    """A translation, its true annotation, and that of each annotator."""

    truth: Annotation
    annotations: Mapping[str, Annotation]
    translation: str = "x" * LENGTH

    @property
    def candidates(self) -> list[Candidate]:
        return [Candidate(annotation=one, annotator=name) for name, one in self.annotations.items()]

    def record(self, number: int) -> CandidateRecord:
        columns = CandidateColumns.of(self.candidates)
        return CandidateRecord(Segment(f"Source {number}.", self.translation, str(number), "A"), columns)


#: Annotator -> how often it sees a true error, and adds another.
SKILLS = {"good": (0.9, 0.1), "fair": (0.7, 0.3), "weak": (0.4, 0.8), "poor": (0.3, 1.0)}


def panel_segments(
    number: int, seed: int = 0, skills: Mapping[str, tuple[float, float]] = SKILLS
) -> Sequence[PanelSegment]:
    rng = random.Random(seed)

    def spans(count: int) -> list[ErrorSpan]:
        starts = [rng.randrange(0, LENGTH, 6) for _ in range(count)]
        return [ErrorSpan(start, start + 5, rng.choice(["major", "minor"])) for start in starts]

    segments = []
    for _ in range(number):
        truth = spans(rng.choice([0, 1, 1, 2, 3]))
        annotations = {
            name: Annotation([one for one in truth if rng.random() < sees] + spans(rng.random() < adds))
            for name, (sees, adds) in skills.items()
        }
        segments.append(PanelSegment(Annotation(truth), annotations))
    return segments
