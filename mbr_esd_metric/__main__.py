"""``python -m mbr_esd_metric VERB``: the command line where its script is not on the path."""

from mbr_esd_metric.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
