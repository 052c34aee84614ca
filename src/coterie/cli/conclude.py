"""``coterie conclude``: who learns with whom, or what the sites have to answer first."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Option

from coterie.cli.errors import CommandError, one_sentence
from coterie.cli.options import AsJson, Folder, KnownKeys, MaxClusters, Sign, parse_count
from coterie.cli.printing import tell, tell_json
from coterie.cli.report import check_page, write_common_page

WITHOUT = "it was left out by --leave-out."
EXIT_PENDING = 3


def _report(progress: dict[str, Any], *, as_json: bool) -> None:
    """Print what `go_on` came to: who is waited for, the next round of questions, or the conclusion.

    ``progress`` is its dict, with a summary where there is a conclusion.
    """
    from coterie._options import listed
    from coterie.cli.summary import show_line, show_summary

    if as_json:
        tell_json(progress)
        return
    if progress["state"] == "waiting for scores":
        for site, reason in progress["waiting"].items():
            tell(f"Waiting for {site}. {reason}")
        tell("To go on without them, pass --now, or --leave-out SITE for some.")
        return
    if progress["state"] == "asking":
        bound = "" if progress["of_at_most"] is None else f" of at most {progress['of_at_most']}"
        tell(
            f"Round {progress['round']}{bound}: run `coterie score` again at "
            f"{listed(list(progress['waiting']), most=8)}, then `coterie conclude`."
        )
        return
    show_summary(progress)
    for site, reason in progress["left_out"].items():
        show_line(f"Left out: {site}. {reason[:1].upper()}{reason[1:]}")
    show_line("Each site predicts with its coterie: coterie predict FOLDER TABLE --name SITE")
    if progress["report"] is not None:
        show_line(progress["report"])


def conclude_command(
    folder: Folder = "",
    leave_out: Annotated[
        list[str] | None, Option(metavar="SITE", help="Go on without this site. The option may be repeated.")
    ] = None,
    now: Annotated[bool, Option("--now", help="Go on without whoever is missing.")] = False,
    n_clusters: Annotated[
        str,
        Option(
            help="Ask for this number of coteries, or for a rule: auto "
            "(held-out), eigengap, gap, gap-jump, penalty."
        ),
    ] = "auto",
    max_clusters: MaxClusters = None,
    min_rows: Annotated[
        int | None, Option(min=1, help="A site needs this many rows. By default as many as in a fit.")
    ] = None,
    refine_rounds: Annotated[
        int, Option(min=1, help="Sites are moved this often at most. Each time costs a round.")
    ] = 2,
    seed: Annotated[int, Option(min=0, help="Start k-means from this seed, the one of the sites.")] = 0,
    rounds: Annotated[
        bool,
        Option("--rounds/--no-rounds", help="Ask the sites further questions, or conclude by losses alone."),
    ] = True,
    wait: Annotated[
        float, Option(min=0, help="Go on for this many seconds, in a folder that is kept in step.")
    ] = 0.0,
    report: Annotated[
        str | None,
        Option(
            metavar="PATH",
            help="Write the report page to this file, even if it is "
            "there. By default it goes into the folder.",
        ),
    ] = None,
    as_json: AsJson = False,
    sign: Sign = None,
    known_keys: KnownKeys = None,
) -> None:
    """Conclude from the files in a folder who learns with whom, or ask the sites for what is missing.

    Anybody may run it, as often as wanted: it needs the folder alone. Exit code 3: the sites have to answer.
    """
    from coterie.cli.rounds import go_on, lacking
    from coterie.cli.sites import check_signer, check_wait, looks, open_folder, open_signer
    from coterie.federated import Settings
    from coterie.summary import summarize

    if report is not None:
        check_page(report)
    check_wait(wait)
    sealed = open_folder(folder, known_keys)
    signer = open_signer(sign, sealed)
    check_signer(sealed, signer)
    settings = Settings(parse_count(n_clusters), max_clusters, "noise", min_rows, refine_rounds, seed, rounds)
    left_out = dict.fromkeys(leave_out or (), WITHOUT)
    with one_sentence():
        for contents in looks(sealed.read, wait):
            what_is_lacking = lacking(contents, left_out)
            if what_is_lacking is None:
                progress = go_on(sealed, contents, settings, left_out, signer, now=now)
                if progress["state"] == "concluded":
                    break
        if what_is_lacking is not None:
            raise CommandError(what_is_lacking)
    if progress["state"] == "concluded":
        conclusion = progress.pop("conclusion")
        progress |= {**summarize(conclusion), "labels": conclusion.labels}
        progress["report"] = write_common_page(conclusion, sealed.path, report)
    progress["troubles"] = dict(contents.troubles)
    _report(progress, as_json=as_json)
    if progress["state"] != "concluded":
        raise typer.Exit(EXIT_PENDING)
