"""`format=marked-omissions`: as `marked`, and behind it the source, each of its words marked as said or left out."""

from __future__ import annotations

from mbr_esd_metric.elicit.formats.marked import MarkedFormat


class MarkedOmissionsFormat(MarkedFormat):
    """As `marked`, and behind it the source with a mark after each word: said, or left out."""

    name = "marked-omissions"
    both_sides = True
