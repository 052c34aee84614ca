"""Which questions a site answers: no more than the method needs, counted where nobody else can write.

Files in the folder can be overwritten and removed by others, so the site keeps a list of what it answered in
its own cache. Where more is asked than it answers, questions that follow from the files come first: whoever
fills the folder with other ones does not stop the method.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from coterie._codec import parse_json
from coterie._files import write_bytes
from coterie.datasets.files import data_home
from coterie.federated.answers import same_members
from coterie.federated.checks import digest
from coterie.federated.folder import FolderContents
from coterie.federated.messages import ProtocolError, Question, Share, question_key
from coterie.federated.protocol import conclude

# Enough for a few sites to fall silent; whoever asks more often wants something else.
MOST_QUESTIONS = 30
# Of the groups of members that are asked about, those for which the next question is looked up.
MOST_GROUPS = 5

Models = Mapping[str, str]


@dataclass(frozen=True)
class AnswerMemory:
    """What a site has answered about its present model, kept at the site in a file that need not be there."""

    path: Path

    def read(self) -> Mapping[str, Models]:
        """Return the models that each answered question was about, by the question's key."""
        try:
            result = parse_json(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:
            result = None
        if not isinstance(result, dict) or not all(isinstance(models, dict) for models in result.values()):
            raise ProtocolError(
                f"{str(self.path)!r}, the list of what was answered, is damaged: look who changed it, then "
                "remove it."
            )
        return result

    def add(self, question: Question) -> None:
        """Note that a question is answered; to be called before the answer is sent."""
        models = {member.site: member.sha for member in question.members}
        whole = {**self.read(), question_key(question): models}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(self.path, json.dumps(whole).encode())


def memory_of(share: Share) -> AnswerMemory:
    """Return what the site of a share has answered, in the folder of `data_home`."""
    name = digest(f"{share.site}\n{share.sha}".encode())[:32]
    return AnswerMemory(data_home() / "answered" / f"{name}.json")


@dataclass(frozen=True)
class DueQuestions:
    """The questions in a folder that a site has to answer, and those that are too many for the method."""

    questions: tuple[Question, ...]
    surplus: tuple[Question, ...]


def open_questions(contents: FolderContents, site: str) -> Sequence[Question]:
    """Return the questions that a site has not answered, all about the models that are shared now.

    There may be any number of them; `due_questions` keeps to the limit.
    """
    shas = {share.site: share.sha for share in contents.shares}
    return [
        each.question
        for each in contents.answered
        if site not in each.answers
        and any(member.site == site for member in each.question.members)
        and all(shas.get(member.site) == member.sha for member in each.question.members)
    ]


def _answered_keys(contents: FolderContents, site: str, remembered: Mapping[str, Models]) -> set[str]:
    """Return the questions about the models that are shared now which the site has answered."""
    shas = {share.site: share.sha for share in contents.shares}
    answered = dict(remembered) | {
        question_key(each.question): {member.site: member.sha for member in each.question.members}
        for each in contents.answered
        if site in each.answers
    }
    return {key for key, models in answered.items() if all(shas.get(s) == sha for s, sha in models.items())}


def _is_same(question: Question, other: Question) -> bool:
    """Tell whether two questions differ in the last digits of weights only."""
    same = same_members(question.members, other.members, "weight", "noise")
    return same and replace(question, members=other.members) == other


def _following(questions: Sequence[Question], contents: FolderContents) -> list[Question]:
    """Return the questions that `conclude` itself would ask, with all sites or with those asked about."""
    shared = {share.site for share in contents.shares}
    groups = dict.fromkeys(frozenset(member.site for member in q.members) for q in questions)
    result: list[Question] = []
    for group in sorted(groups, key=len, reverse=True)[:MOST_GROUPS]:
        try:
            outcome = conclude(
                contents.shares,
                contents.scores,
                contents.answered,
                leave_out=dict.fromkeys(shared - group, "it is not needed."),
            )
        except ProtocolError:
            continue
        if isinstance(outcome, Question):
            result += [question for question in questions if _is_same(question, outcome)]
    return result


def due_questions(
    contents: FolderContents,
    site: str,
    remembered: Mapping[str, Models],
    read_all: Callable[[], FolderContents],
) -> DueQuestions:
    """Return the questions that a site has to answer, within the limit.

    ``contents`` has the answers of the site at least; ``read_all`` returns the contents with all answers, and
    is called only where more is asked than answered. ``remembered`` is from `AnswerMemory.read`: a question
    that was answered before costs nothing, for the answer is the same.
    """
    unanswered = open_questions(contents, site)
    again = [question for question in unanswered if question_key(question) in remembered]
    new = [question for question in unanswered if question_key(question) not in remembered]
    room = max(0, MOST_QUESTIONS - len(_answered_keys(contents, site, remembered)))
    if len(new) > room:
        first = _following(new, read_all())
        new = [*first, *(question for question in new if question not in first)]
    return DueQuestions((*again, *new[:room]), tuple(new[room:]))
