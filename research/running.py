"""Runs a script's `main` as `mbr-esd` runs its verbs: an error of ours is one line on standard error, exit status 1."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from mbr_esd_metric.errors import MbrEsdError


def run(main: Callable[[], None]) -> None:
    """Call it; end the process with a line where it raises one of our errors, or one about a file."""
    try:
        main()
    except (MbrEsdError, OSError) as error:
        sys.exit(f"{Path(sys.argv[0]).name}: error: {error}")
