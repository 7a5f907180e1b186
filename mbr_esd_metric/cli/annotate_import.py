"""`mbr-esd annotate import`: what annotators gave back, as ratings that every verb reads."""

from __future__ import annotations

import argparse

from mbr_esd_metric.errors import InputError, number_of, printable

_EPILOG = """\
examples:
  mbr-esd annotate import campaign.json annotations.json -o ratings.jsonl    Pearmut's download
  mbr-esd annotate import FOLDER -o ratings.jsonl                            the folder in which it runs
  mbr-esd report out.json ratings.jsonl -o report.html

`report`, `show`, `calibrate` and `wmt` read the ratings. Attention checks are left out.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """The campaign, its annotations, and where the ratings go."""
    parser.add_argument("campaign", metavar="CAMPAIGN", help="the campaign's file, or the folder where Pearmut runs")
    parser.add_argument("annotations", nargs="?", metavar="ANNOTATIONS", help="the download, where that is a file")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.jsonl", help="the ratings")
    parser.add_argument("--lp", metavar="LP", help="the language pair, where the campaign was not made here")
    parser.add_argument("--campaign", dest="name", metavar="NAME", help="which one, if there are several")
    parser.epilog = _EPILOG


def run(args: argparse.Namespace) -> int:
    """Write the ratings, and say who passed the attention checks."""
    from mbr_esd_metric.adapters.pearmut.annotations import ratings_of
    from mbr_esd_metric.adapters.pearmut.files import Campaign, read_campaign, read_log
    from mbr_esd_metric.adapters.ratings import write_person_ratings
    from mbr_esd_metric.files.paths import check_output

    check_output(args.output, [args.campaign, args.annotations])
    made, log = read_campaign(args.campaign, args.name)
    if args.annotations is not None:
        log = read_log(args.annotations, str(made["campaign_id"]))
    if log is None:
        raise InputError(
            f"{args.campaign} is the campaign alone; give the annotations that Pearmut's page downloads too"
        )
    found = ratings_of(Campaign.of(made, args.lp), log)
    if not found.ratings:
        raise InputError(f"{args.campaign}: nobody has finished a screen of {made['campaign_id']} yet")
    write_person_ratings(args.output, found.ratings)
    people = number_of(len({one.rating.rater for one in found.ratings}), "annotator")
    print(f"{args.output}: {number_of(len(found.ratings), 'rating')} of {people}")
    for reason, count in found.left_out.items():
        print(f"  {count} left out: {reason}")
    for person, (passed, shown) in found.checks.items():
        if shown:
            print(f"  {printable(person)} passed {passed} of {number_of(shown, 'attention check')}")
    return 0
