"""``coterie conclude``: who learns with whom, or what the sites have to answer first."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coterie.cli.errors import CommandError, one_sentence
from coterie.cli.options import AsJson, Folder, KnownKeys, MaxClusters, Sign, parse_count
from coterie.cli.printing import tell, tell_json
from coterie.cli.sites import check_signer, check_wait, looks, open_folder, open_signer

if TYPE_CHECKING:
    from coterie.federated import Question
    from coterie.federated.folder import Contents, SealedFolder
    from coterie.federated.signing import Signer

WITHOUT = "it was left out by --leave-out."
ASKED = 3


def _missing(question: Question, contents: Contents) -> list[str]:
    """Return who has not answered a question."""
    for each in contents.answered:
        if each.question == question:
            return [member.site for member in question.members if member.site not in each.answers]
    return [member.site for member in question.members]


def _step(
    sealed: SealedFolder,
    contents: Contents,
    settings: Any,
    without: Mapping[str, str],
    signer: Signer | None,
    *,
    now: bool,
) -> dict[str, Any]:
    """Go as far as the files in the folder allow, and say where that is."""
    from coterie.federated import Conclusion, conclude
    from coterie.federated.attendance import take_attendance
    from coterie.summary import summarize

    gone = dict(without)
    attendance = take_attendance(
        contents.shares, contents.scores, min_rows=settings.min_rows, leave_out=without
    )
    if attendance.waiting and not now:
        return {"state": "waiting for scores", "waiting": dict(attendance.waiting)}
    gone |= {site: f"{why[:1].lower()}{why[1:]}" for site, why in attendance.waiting.items()}
    while True:
        outcome = conclude(
            contents.shares, contents.scores, contents.answered, settings=settings, leave_out=gone
        )
        if isinstance(outcome, Conclusion):
            sealed.put(outcome, signer, replace=True)
            return {"state": "concluded", **summarize(outcome), "labels": outcome.labels}
        missing = _missing(outcome, contents)
        new = sealed.put(outcome, signer)
        asked = len(outcome.members)
        if new or not now or len(missing) == asked:
            rounds = _round(contents, outcome)
            return {
                "state": "asking",
                "round": rounds,
                # Rounds that were asked with other settings count, and have no bound in common.
                "of_at_most": settings.refine_rounds + 1 if rounds <= settings.refine_rounds + 1 else None,
                "waiting": dict.fromkeys(missing, "It has not answered."),
            }
        gone |= dict.fromkeys(missing, "it did not answer.")


def _lacking(contents: Contents, without: Mapping[str, str]) -> str | None:
    """Say what has to be shared before anything can be concluded."""
    shared = {share.site for share in contents.shares}
    if not shared:
        return "The folder has no share: run `coterie share` at every site first."
    for site in without:
        if site not in shared:
            return f"The folder has no share of {site!r} to leave out: check the name."
    return None


def _round(contents: Contents, question: Question) -> int:
    """Return the number of a question among those about the same members."""
    earlier = [e.question for e in contents.answered if e.question.members == question.members]
    return len([each for each in earlier if each != question]) + 1


def _report(found: dict[str, Any], *, as_json: bool) -> None:
    from coterie._options import listed
    from coterie.cli.summary import make_console, show_line, show_summary

    if as_json:
        tell_json(found)
        return
    if found["state"] == "waiting for scores":
        for site, why in found["waiting"].items():
            tell(f"Waiting for {site}. {why}")
        tell("To go on without them, pass --now, or --leave-out SITE for some.")
        return
    if found["state"] == "asking":
        most = "" if found["of_at_most"] is None else f" of at most {found['of_at_most']}"
        tell(
            f"Round {found['round']}{most}: run `coterie score` again at "
            f"{listed(list(found['waiting']), most=8)}, then `coterie conclude`."
        )
        return
    console = make_console(sys.stdout)
    show_summary(console, found)
    for site, why in found["left_out"].items():
        show_line(console, f"Left out: {site}. {why[:1].upper()}{why[1:]}")
    show_line(console, "Each site predicts with its coterie: coterie predict FOLDER TABLE --name SITE")


def conclude_command(
    folder: Folder = "",
    leave_out: Annotated[
        list[str] | None, typer.Option(metavar="SITE", help="Go on without this site; may be repeated.")
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="Go on without whoever is missing.")] = False,
    n_clusters: Annotated[
        str, typer.Option(help="A number, or held-out (auto), eigengap, gap, gap-jump, penalty.")
    ] = "auto",
    max_clusters: MaxClusters = None,
    min_rows: Annotated[
        int | None, typer.Option(min=1, help="Rows that a site needs; default: as a fit.")
    ] = None,
    refine_rounds: Annotated[
        int, typer.Option(min=1, help="How often sites are moved at most; each costs a round.")
    ] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Of k-means; as at the sites.")] = 0,
    rounds: Annotated[
        bool, typer.Option("--rounds/--no-rounds", help="Ask further questions, or conclude by losses alone.")
    ] = True,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to go on, in a folder that is kept in step.")
    ] = 0.0,
    as_json: AsJson = False,
    sign: Sign = None,
    known_keys: KnownKeys = None,
) -> None:
    """Conclude from the files in a folder who learns with whom, or ask the sites for what is missing.

    Anybody may run it, as often as wanted: it needs the folder alone. Exit code 3: the sites have to answer.
    """
    from coterie.federated import Settings

    check_wait(wait)
    sealed = open_folder(folder, known_keys)
    signer = open_signer(sign, sealed)
    check_signer(sealed, signer)
    settings = Settings(parse_count(n_clusters), max_clusters, "noise", min_rows, refine_rounds, seed, rounds)
    without = dict.fromkeys(leave_out or (), WITHOUT)
    with one_sentence():
        for contents in looks(sealed.read, wait):
            lacking = _lacking(contents, without)
            if lacking is None:
                found = _step(sealed, contents, settings, without, signer, now=now)
                if found["state"] == "concluded":
                    break
        if lacking is not None:
            raise CommandError(lacking)
    found["troubles"] = dict(contents.troubles)
    _report(found, as_json=as_json)
    if found["state"] != "concluded":
        raise typer.Exit(ASKED)
