"""From a subject to a plain dict: what `Report.json` writes, and what the page is made from.

It is the answer of `coterie.summary` with one sentence that leads, the page's sentences, the numbers behind
its pictures and the settings. Nothing here marks up. A section whose numbers do not exist holds the sentence
that says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from coterie._text import number
from coterie.federated import Conclusion
from coterie.report import pictures, words
from coterie.report.against import against_words, changes_since
from coterie.report.cards import learner_cards, verdict_parts
from coterie.report.differences import differences_picture
from coterie.report.identity import columns_overview, columns_words, run_identity, settings, target_and_unit
from coterie.report.importance import importance_picture, importance_words
from coterie.report.site import mixtures_picture, mixtures_words, site_picture, site_words
from coterie.report.subject import ReportSubject, full_name

DEFAULT_TITLE = "Who learns with whom"

NO_BOOTSTRAP = (
    "Nothing is known about how sure the coteries are: the model was fitted without a bootstrap, or by a "
    "version of coterie that had none. Fit with n_bootstrap=200."
)
BY_MOMENTS = "A conclusion from moments has no errors: each site learns at home what others bring it."
BY_LOSSES = "The sites were asked for losses only, so that nobody measured what others bring."


def _who(pays: Mapping[str, Any], n_learners: int) -> str:
    """Say for how many of the compared learners it is expected to pay to learn with others.

    ``pays`` has the counts of verdicts: ``n_gain`` learners that should collaborate, ``n_lose`` that should
    stay alone, of ``n_compared``. Learners with too few rows are not compared, and the text says so.
    """
    gain, compared = pays["n_gain"], pays["n_compared"]
    learners = "learner" if compared == 1 else "learners"
    if compared < n_learners:
        learners += " with enough rows"
    if not gain and not pays["n_lose"]:
        return f"Learning with others makes no clear difference for any of the {compared:,} {learners}"
    if not gain:
        return f"Learning with others is not expected to pay for any of the {compared:,} {learners}"
    whom = f"all {compared:,}" if gain == compared > 1 else f"{gain:,} of the {compared:,}"
    return f"Learning with others is expected to pay for {whom} {learners}"


def _moved(name: str, before: str, after: str, unit: str, *, more: bool) -> str:
    """Say how a number changes, with its unit; ``more``: it rises. Equal texts stay."""
    unit = f" {unit}" if unit else ""
    if before == after:
        return f"{name} stays at {after}{unit}"
    return f"{name} {'rises' if more else 'falls'} from {before} to {after}{unit}"


def _error(summary: Mapping[str, Any], target: str, unit: str) -> str:
    """Say how the typical error changes with others, or the accuracy of classes; empty if unknown.

    ``target`` and ``unit`` are put into the text where they are known. Of classes (a summary with ``scores``)
    the accuracy is taken, or else the Brier score, the squared error of probabilities.
    """
    scores = summary.get("scores")
    if "scores" in summary:
        for score, name, format_score in (
            ("accuracy", "accuracy", "{:.1%}".format),
            ("brier", "the Brier score", number),
        ):
            alone, with_others = (scores[key][score] if scores else None for key in ("alone", "with"))
            if alone is not None and with_others is not None:
                return _moved(
                    name, format_score(alone), format_score(with_others), "", more=with_others > alone
                )
        return ""
    pays = summary["pays"]
    alone, with_others = pays["rmse_alone"], pays["rmse_with"]
    if alone is None or with_others is None:
        return ""
    error_name = f"the typical error of {target}" if target else "the typical error"
    return _moved(error_name, number(alone), number(with_others), unit, more=with_others > alone)


def lead_sentence(summary: Mapping[str, Any], target: str = "", unit: str = "") -> str:
    """Return the answer of a summary (see `coterie.summary.summarize`) in one sentence.

    It says for how many learners it pays, how many should stay alone, and what becomes of the error.
    Without a comparison it is the summary's own first sentence.
    """
    pays = summary["pays"]
    if (
        summary.get("nothing_to_learn")
        or summary["n_learners"] == 1
        or pays is None
        or not pays["n_compared"]
    ):
        first: str = summary["answer"][0]
        return first
    clauses = [_who(pays, summary["n_learners"])]
    if pays["n_lose"]:
        clauses.append(f"{pays['n_lose']:,} should stay alone")
    error = _error(summary, target, unit)
    if error:
        clauses.append(error)
    text = clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])}, and {clauses[-1]}"
    return f"{text}."


def _section(
    name: str, heading: str, data: dict[str, Any] | str, say: Callable[[dict[str, Any]], list[str]]
) -> dict[str, Any]:
    """Return a section: its data with the sentences that ``say`` makes of them, or why it has none.

    ``data`` is a text where the numbers do not exist: the sentence that says why.
    """
    if isinstance(data, str):
        return {"id": name, "heading": heading, "missing": True, "words": [data], "data": None}
    return {"id": name, "heading": heading, "missing": False, "words": say(data), "data": data}


def _site_sections(subject: ReportSubject, conclusion: Conclusion, site: str) -> list[dict[str, Any]]:
    """Return the two sections of one site's page: what others bring it, and why so many coteries."""
    heading = f"What it brings {full_name(site)}"
    return [_section("site", heading, site_picture(conclusion, site), site_words), _why(subject.summary)]


def _why(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the section on how the number of coteries was chosen."""
    reason = {name: summary[name] for name in ("rule", "n_clusters", "rules", "bootstrap")}
    return _section("why", "Why this many coteries", reason, words.curves_words)


def _gains(subject: ReportSubject, cards: dict[str, Any]) -> dict[str, Any]:
    """Return the section on who gains how much, or why that is not known.

    ``cards`` is what `learner_cards` returned, for the sentences. A conclusion from moments or losses
    alone has no errors to compare.
    """
    pays, conclusion = subject.summary["pays"], subject.conclusion
    data: dict[str, Any] | str = subject.why_missing("Errors alone, with the coterie and with all")
    if conclusion is not None and pays is not None and not pays["n_compared"] and not conclusion.rounds:
        data = BY_LOSSES if conclusion.mixtures else BY_MOMENTS
    elif pays is not None:
        data = {"verdicts": verdict_parts(pays["verdicts"])}
    return _section("gains", "Who gains, who loses", data, lambda _: words.gains_words(cards, pays))


def _sections(subject: ReportSubject, cards: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the sections of the page in order; one whose numbers do not exist says why.

    What exists depends on the subject: a fitted model has all, a partition no models, a conclusion of
    sites no rows.
    """
    if subject.conclusion is not None and subject.site is not None:
        return _site_sections(subject, subject.conclusion, subject.site)
    summary, why_missing = subject.summary, subject.why_missing
    no_membership = why_missing("Membership probabilities") if subject.model is None else NO_BOOTSTRAP
    membership = pictures.membership_picture(subject) or no_membership
    losses: dict[str, Any] | str = why_missing("Losses of everybody's model on everybody's rows")
    coordinates: dict[str, Any] | str = why_missing("The learners' places")
    if subject.partition is not None:
        losses, coordinates = pictures.losses_picture(subject), pictures.map_picture(subject)
    sections = [
        _gains(subject, cards),
        _section("losses", "Who predicts whom", losses, words.losses_words),
        _section("map", "Map of the learners", coordinates, words.map_words),
        _why(summary),
        _section("membership", "How sure the coteries are", membership, words.membership_words),
        _section(
            "differences", "How the coteries differ", differences_picture(subject), words.differences_words
        ),
    ]
    matters = _section(
        "importance", "What matters in each coterie", importance_picture(subject), importance_words
    )
    sections.append(matters)
    made_of = "What the predictions are made of"
    weights, mixtures = pictures.weights_picture(subject), mixtures_picture(subject.conclusion)
    if weights is not None:
        sections.append(_section("weights", made_of, weights, words.weights_words))
    if mixtures is not None:
        sections.append(_section("weights", made_of, mixtures, mixtures_words))
    columns = columns_overview(subject)
    if columns is not None:
        sections.append(_section("columns", "The columns of the table", columns, columns_words))
    return sections


def report_summary(
    subject: ReportSubject, title: str | None = None, against: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return all that a report says, under a heading: texts, numbers, lists and dicts, as JSON knows them.

    ``against`` is the summary of an earlier run to compare with, ``title`` a heading in place of the
    usual one.
    """
    default_title = (
        DEFAULT_TITLE if subject.site is None else f"{full_name(subject.site)}: with whom to learn"
    )
    cards = learner_cards(subject)
    summary = subject.summary
    sections = _sections(subject, cards)
    if against is not None:
        changes = changes_since(against, summary)
        sections.insert(1, _section("against", "Against the earlier run", changes, against_words))
    return {
        "title": default_title if title is None else str(title),
        "site": subject.site,
        "run": run_identity(subject),
        "lead": lead_sentence(summary, *target_and_unit(subject)),
        **summary,
        "cards": cards,
        "sections": sections,
        "settings": settings(subject),
    }
