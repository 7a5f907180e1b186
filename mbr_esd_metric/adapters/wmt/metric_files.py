"""The files of a metric in the folder: scores of segments and systems, error spans, and what they depend on."""

from __future__ import annotations

from dataclasses import dataclass, field

from mbr_esd_metric.adapters.wmt import layout as files
from mbr_esd_metric.adapters.wmt.layout import Layout
from mbr_esd_metric.adapters.wmt.rating_files import read_ratings, write_ratings
from mbr_esd_metric.adapters.wmt.test_set import TestSet
from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.errors import InputError, number_of
from mbr_esd_metric.files.streams import write_whole


@dataclass(frozen=True, slots=True)
class WrittenMetric:
    """One metric in the folder.

    Attributes:
        name: its full name.
        translations, without: the numbers of the systems' translations with a score, and without.
        left_out: rows of a submission whose system or segment the test set lacks.
        scored: whether this run scored any; False where all scores were in the folder.
    """

    name: str
    systems: int
    translations: int
    without: int
    spans: bool = False
    left_out: int = 0
    scored: bool = True

    def __str__(self) -> str:
        kind = "scores and error spans" if self.spans else "scores"
        left_out = f"; left out: {number_of(self.left_out, 'row')} of other translations" if self.left_out else ""
        without = f"; {number_of(self.without, 'unrated translation')} without an answer" if self.without else ""
        return (
            f"{self.name}, {kind} of {number_of(self.translations, 'translation')} by "
            f"{number_of(self.systems, 'system')}{left_out}{without}"
        )


@dataclass(slots=True)
class MetricFiles:
    """The contents of a metric's files, by system.

    Attributes:
        scores: of each segment; None for one without a score.
        annotations: of each segment, both sides; empty for a metric without error spans.
        system_scores: of the system.
    """

    scores: dict[str, list[float | None]] = field(default_factory=dict)
    annotations: dict[str, list[Annotation | None]] = field(default_factory=dict)
    system_scores: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, layout: Layout, name: str) -> MetricFiles:
        """The files of a metric, by its full name."""
        path = layout.metric_rating(name)
        stored = read_ratings(path) if path.is_file() else {}
        annotations = {system: [annotation for _, annotation, _ in row] for system, row in stored.items()}
        means = {s: row[0] for s, row in files.score_rows(layout.metric_scores(name, "sys")).items()}
        scores = files.score_rows(layout.metric_scores(name, "seg"))
        return cls(scores, annotations, {s: score for s, score in means.items() if score is not None})

    def write(self, test_set: TestSet, name: str, signature: str) -> None:
        """Write the files. Segment scores of another signature are removed first; the new ones are written last."""
        layout = test_set.layout
        segments, rating = layout.metric_scores(name, "seg"), layout.metric_rating(name)
        if test_set.signature(name) != signature:
            segments.unlink(missing_ok=True)
        if self.annotations:
            write_ratings(rating, self.annotations)
        else:
            rating.unlink(missing_ok=True)
        files.write_scores(layout.metric_scores(name, "sys"), {s: [score] for s, score in self.system_scores.items()})
        write_whole(layout.metric_signature(name), signature + "\n")
        files.write_scores(segments, self.scores)

    def add(self, test_set: TestSet, name: str, signature: str, *, overwrite: bool, left_out: int = 0) -> WrittenMetric:
        """Write the files of a metric that was read elsewhere; a system's score is the mean of its segments.

        Raises:
            InputError: the test set has a metric of this full name, and it is not to be overwritten.
        """
        path = test_set.layout.metric_scores(name, "seg")
        if path.is_file() and not overwrite:
            raise InputError(f"{path} is already there; choose another --name, or add --overwrite")
        by_system = {system: [score for score in row if score is not None] for system, row in self.scores.items()}
        self.system_scores = {system: sum(row) / len(row) for system, row in by_system.items()}
        self.write(test_set, name, signature)
        count, systems = sum(map(len, by_system.values())), len(self.scores)
        without, spans = systems * test_set.segments - count, len(self.annotations) == systems
        return WrittenMetric(name, systems, count, without, spans, left_out)
