"""The Jaccard index of the marked characters."""

from typing import ClassVar

import numpy as np

from mbr_esd_metric.core.annotation import Annotation
from mbr_esd_metric.core.kernels import AnnotationTable, Floats, products, severity_vector
from mbr_esd_metric.core.similarities import Similarity


class Jaccard(Similarity):
    """Characters that both mark, of those that either marks; 1 where neither marks any."""

    name: ClassVar[str] = "example-jaccard"
    symmetric: ClassVar[bool] = True

    def scalar(self, candidate: Annotation, support: Annotation, length: int) -> float:
        c, s = severity_vector(candidate, length) > 0, severity_vector(support, length) > 0
        return float((c & s).sum() / (c | s).sum()) if (c | s).any() else 1.0

    def matrix(self, table: AnnotationTable, rows: slice, columns: slice) -> Floats:
        both = products((table.marked, table.widths), rows, columns)
        size = (table.marked @ table.widths).astype(np.float64)
        either = size[rows, None] + size[None, columns] - both
        return np.where(either > 0, both / np.maximum(either, 1), 1.0)
