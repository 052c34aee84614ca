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

# The most questions about its present model that a site answers. A fit needs a few; each site that falls
# silent starts it anew. Whoever asks more often wants something else, such as single rows.
MOST_QUESTIONS = 30
# Questions are about groups of members. For this number of groups, the largest ones, `conclude` is run.
MOST_GROUPS = 5

# The sha256 of each member's model, by site.
Models = Mapping[str, str]


@dataclass(frozen=True)
class AnswerMemory:
    """A list of the questions that a site has answered about its present model, in a file at the site.

    The file need not be there: then nothing was answered.
    """

    path: Path

    def read(self) -> Mapping[str, Models]:
        """Return the models that each answered question was about, by the question's key.

        A damaged file is refused rather than taken for empty: whoever damages it could ask without limit.
        """
        try:
            models_by_question = parse_json(self.path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError:
            models_by_question = None
        if not isinstance(models_by_question, dict) or not all(
            isinstance(models, dict) for models in models_by_question.values()
        ):
            raise ProtocolError(
                f"{str(self.path)!r}, the list of what was answered, is damaged: look who changed it, then "
                "remove it."
            )
        return models_by_question

    def add(self, question: Question) -> None:
        """Add a question to the list; to be called before the answer is sent, so that none goes uncounted."""
        models = {member.site: member.sha for member in question.members}
        models_by_question = {**self.read(), question_key(question): models}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(self.path, json.dumps(models_by_question).encode())


def memory_of(share: Share) -> AnswerMemory:
    """Return the list of what a share's site has answered about this model, in the folder of `data_home`."""
    name = digest(f"{share.site}\n{share.sha}".encode())[:32]
    return AnswerMemory(data_home() / "answered" / f"{name}.json")


@dataclass(frozen=True)
class DueQuestions:
    """The questions that a site has to answer, and the ``surplus`` beyond the limit, which it refuses."""

    questions: tuple[Question, ...]
    surplus: tuple[Question, ...]


def open_questions(contents: FolderContents, site: str) -> Sequence[Question]:
    """Return the questions to a site that it has not answered, all about the models that are shared now.

    There may be any number of them; `due_questions` keeps to the limit.
    """
    current_shas = {share.site: share.sha for share in contents.shares}
    return [
        asked.question
        for asked in contents.answered
        if site not in asked.answers
        and any(member.site == site for member in asked.question.members)
        and all(current_shas.get(member.site) == member.sha for member in asked.question.members)
    ]


def _answered_keys(contents: FolderContents, site: str, remembered: Mapping[str, Models]) -> set[str]:
    """Return the keys of the questions about the present models that the site has answered.

    They are known from the folder and, since files there can be removed, from the site's own memory.
    """
    current_shas = {share.site: share.sha for share in contents.shares}
    models_by_question = dict(remembered) | {
        question_key(asked.question): {member.site: member.sha for member in asked.question.members}
        for asked in contents.answered
        if site in asked.answers
    }
    return {
        key
        for key, models in models_by_question.items()
        if all(current_shas.get(name) == sha for name, sha in models.items())
    }


def _is_same(question: Question, other: Question) -> bool:
    """Tell whether two questions are the same but for rounding in the members' weights and noise levels."""
    same_models = same_members(question.members, other.members, "weight", "noise")
    return same_models and replace(question, members=other.members) == other


def _following(questions: Sequence[Question], contents: FolderContents) -> list[Question]:
    """Return the questions that `conclude` itself would ask, with all sites or with those asked about.

    Whoever coordinates may have left sites out, so that each group of members in a question is tried. These
    questions come from the method; others may be attempts to learn more about a site's rows.
    """
    shared = {share.site for share in contents.shares}
    groups_of_members = dict.fromkeys(frozenset(member.site for member in q.members) for q in questions)
    expected: list[Question] = []
    for group in sorted(groups_of_members, key=len, reverse=True)[:MOST_GROUPS]:
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
            # Two machines may round weights differently, hence the comparison up to rounding.
            expected += [question for question in questions if _is_same(question, outcome)]
    return expected


def due_questions(
    contents: FolderContents,
    site: str,
    remembered: Mapping[str, Models],
    read_all: Callable[[], FolderContents],
) -> DueQuestions:
    """Return the questions that a site has to answer, those that follow from the files first.

    ``contents`` has the answers of the site at least; ``read_all`` returns the contents with all answers, and
    is called only where more is asked than answered. ``remembered`` is from `AnswerMemory.read`: a question
    that was answered before costs nothing, for the answer is the same.
    """
    unanswered = open_questions(contents, site)
    answered_before = [question for question in unanswered if question_key(question) in remembered]
    new = [question for question in unanswered if question_key(question) not in remembered]
    # Many questions together could be solved for single rows, so that their number has a limit.
    n_left = max(0, MOST_QUESTIONS - len(_answered_keys(contents, site, remembered)))
    if len(new) > n_left:
        expected = _following(new, read_all())
        new = [*expected, *(question for question in new if question not in expected)]
    return DueQuestions((*answered_before, *new[:n_left]), tuple(new[n_left:]))
