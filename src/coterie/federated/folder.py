"""The sealed folder: files that people pass on by any means, and nobody's code runs.

A file holds one message. What is in the folder is read as if a stranger had written it: links, pipes and
files too large are not opened, and what cannot be read is named and left out.
"""

from __future__ import annotations

import logging
import os
import secrets
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from coterie._files import write_bytes
from coterie.federated.answers import Answered, check_answer
from coterie.federated.checks import digest
from coterie.federated.codec import MOST_BYTES
from coterie.federated.conclusions import Conclusion
from coterie.federated.messages import (
    Answer,
    Message,
    ProtocolError,
    Question,
    Score,
    Share,
    kind_of,
    question_key,
)
from coterie.federated.sealing import LONGEST_HEADER, Sealed, read_header, seal, speaker_of, unseal
from coterie.federated.signing import Signer
from coterie.federated.tables import Columns, Encoding, Moments

log = logging.getLogger(__name__)

SUFFIX = ".coterie"
MOST_FILES = 100_000
# Of all files together: a thousand sites with forests of two megabytes each.
MOST_IN_ALL = 2 * 2**30
# Of a site, in a file's name.
LONGEST_NAME = 120


@dataclass(frozen=True)
class FolderContents:
    """What a folder holds, as far as it can be read.

    There is one share for a name, for a share is read under its own file's name only. ``answered`` has the
    questions with their answers; ``troubles`` are files that cannot be used, and why. ``concluder`` is the
    public key that signed the conclusion.
    """

    shares: tuple[Share, ...]
    scores: tuple[Score, ...]
    answered: tuple[Answered, ...]
    conclusion: Conclusion | None
    moments: tuple[Moments, ...]
    columns: tuple[Columns, ...]
    encoding: Encoding | None
    troubles: Mapping[str, str]
    concluder: str | None = None

    def moments_of(self, site: str) -> Moments | None:
        """Return the moments of one site; None where it sent none."""
        return next((message for message in self.moments if message.site == site), None)

    def share_of(self, site: str) -> Share:
        """Return the share of one site."""
        result = [share for share in self.shares if share.site == site]
        if not result:
            raise ProtocolError(f"The folder has no share of {site!r}: run `coterie share` first.")
        return result[0]


def file_name(message: Message) -> str:
    """Return the name of a message's file; any name of a site gives a name that every system takes."""
    site = quote(speaker_of(message), safe="").replace("~", "%7E")
    if len(site) > LONGEST_NAME:
        site = digest(speaker_of(message).encode())[:32]
    parts = [kind_of(message), site]
    if isinstance(message, Question):
        parts.append(question_key(message)[:16])
    if isinstance(message, Answer):
        parts.append(message.question[:16])
    return "-".join(part for part in parts if part) + SUFFIX


def _content(path: Path) -> bytes:
    """Return the bytes of a plain file of a sensible size."""
    try:
        result = path.lstat()
        if not stat.S_ISREG(result.st_mode):
            raise ProtocolError("It is no plain file.")
        if result.st_size > MOST_BYTES + LONGEST_HEADER:
            raise ProtocolError(f"It has {result.st_size} bytes: at most {MOST_BYTES} are read.")
        return path.read_bytes()
    except OSError as error:
        raise ProtocolError(f"It cannot be read ({error.strerror or error}).") from None


def _beyond_the_most(paths: Sequence[Path]) -> dict[str, str]:
    """Return the files that are too much to read; the largest ones, for then no small one is left out."""
    sizes = {}
    for path in paths:
        # Whoever reads the file says why it cannot be looked at.
        with suppress(OSError):
            sizes[path.name] = path.lstat().st_size
    troubles, total = {}, 0
    for name, size in sorted(sizes.items(), key=lambda item: (item[1], item[0])):
        total += size
        if total > MOST_IN_ALL:
            troubles[name] = (
                f"It has {size} bytes, and with it the files of the folder have more than the {MOST_IN_ALL} "
                "that are read together: remove it, or ask for a smaller model."
            )
    return troubles


def _check_pinned(found: Mapping[str, Sealed]) -> dict[str, str]:
    """Return files that are signed by another key than their site's share."""
    headers = {name: sealed.header for name, sealed in found.items()}
    pinned = {header.site: header.key for header in headers.values() if header.kind == "share"}
    return {
        name: f"It is not signed with the key that signed the share of {header.site!r}."
        for name, header in headers.items()
        if header.site and header.key != pinned.get(header.site, header.key)
    }


def _answered(
    questions: Mapping[str, Question], answers: Mapping[str, Answer], troubles: dict[str, str]
) -> tuple[Answered, ...]:
    """Sort the answers by their questions; a site has one file, and so one answer, for each."""
    by_question: dict[str, dict[str, Answer]] = {key: {} for key in questions}
    for name, answer in sorted(answers.items()):
        question = questions.get(answer.question)
        if question is None:
            troubles[name] = "It answers a question that is not in the folder."
            continue
        try:
            check_answer(question, answer)
        except ProtocolError as error:
            troubles[name] = str(error)
            continue
        by_question[answer.question][answer.site] = answer
    return tuple(Answered(questions[key], by_question[key]) for key in sorted(questions))


class SealedFolder:
    """A folder of sealed files.

    Parameters
    ----------
    path : str or Path
        The folder; it must be there.
    known_keys : mapping of str to str or None, default=None
        Public keys by site; None: unsigned files are read.
    """

    def __init__(self, path: str | Path, known_keys: Mapping[str, str] | None = None) -> None:
        self.path, self.known_keys = Path(path), known_keys
        if not self.path.is_dir():
            raise ProtocolError(f"There is no folder {str(path)!r}: make it, or check the path.")

    def _files(self) -> list[Path]:
        """Return the sealed files of the folder in order; refuse too many."""
        paths = sorted(path for path in self.path.iterdir() if path.name.endswith(SUFFIX))
        if len(paths) > MOST_FILES:
            raise ProtocolError(f"The folder {str(self.path)!r} has {len(paths)} files: that is too many.")
        return paths

    def read(self, answers_of: str | None = None) -> FolderContents:
        """Read all files; those that cannot be used are named.

        Parameters
        ----------
        answers_of : str or None, default=None
            Read the answers of this site only, which is all that a site has to know. None: of all.

        Returns
        -------
        FolderContents
            What can be used.
        """
        result: dict[str, Sealed] = {}
        paths = self._files()
        troubles = _beyond_the_most(paths)
        for path in paths:
            if path.name in troubles:
                continue
            try:
                content = _content(path)
                if answers_of is not None:
                    header, _ = read_header(content)
                    if header.kind == "answer" and header.site != answers_of:
                        continue
                sealed = unseal(content, self.known_keys)
                # A copy may be an old message, brought back to contradict a new one.
                if path.name != (name := file_name(sealed.message)):
                    raise ProtocolError(f"Its name must be {name!r}: it was renamed, or is a copy.")
                result[path.name] = sealed
            except ProtocolError as error:
                troubles[path.name] = str(error)
        pinned = _check_pinned(result)
        troubles |= pinned
        messages = {name: sealed.message for name, sealed in result.items() if name not in pinned}
        questions = {question_key(m): m for m in messages.values() if isinstance(m, Question)}
        answers = {name: m for name, m in messages.items() if isinstance(m, Answer)}
        # A conclusion has one name, so there is one at most.
        concluded = [name for name, m in messages.items() if isinstance(m, Conclusion)]
        conclusion = next((m for m in messages.values() if isinstance(m, Conclusion)), None)
        return FolderContents(
            shares=tuple(m for m in messages.values() if isinstance(m, Share)),
            scores=tuple(m for m in messages.values() if isinstance(m, Score)),
            answered=_answered(questions, answers, troubles),
            conclusion=conclusion,
            moments=tuple(m for m in messages.values() if isinstance(m, Moments)),
            columns=tuple(m for m in messages.values() if isinstance(m, Columns)),
            encoding=next((m for m in messages.values() if isinstance(m, Encoding)), None),
            troubles=troubles,
            concluder=result[concluded[0]].header.key if concluded else None,
        )

    def put(self, message: Message, signer: Signer | None = None, *, replace: bool = False) -> bool:
        """Write a message, whole or not at all; what is newer or of another kind is put aside, not lost.

        Parameters
        ----------
        message : Message
            What to write.
        signer : Signer or None, default=None
            Who signs.
        replace : bool, default=False
            Replace an older file with other content. Questions and answers always are.

        Returns
        -------
        bool
            Whether something was written; False: the same message is there.
        """
        path = self.path / file_name(message)
        taken = path.exists() or path.is_symlink()
        if taken:
            # What such a file says follows from its name: another content is a damaged or a forged one.
            replace = replace or isinstance(message, (Question, Answer))
            if self._is_there(path, message, signer, replace=replace):
                return False
            self._make_room(path)
        try:
            write_bytes(path, seal(message, signer), fresh=not taken)
        except FileExistsError:
            raise ProtocolError(f"{path.name!r} has just been written by somebody else.") from None
        return True

    def _is_there(self, path: Path, message: Message, signer: Signer | None, *, replace: bool) -> bool:
        """Tell whether the same message is there; refuse to replace another one unless asked."""
        try:
            sealed, reason = unseal(_content(path), self.known_keys), "with other content and stays as it is."
            # Anybody may ask and conclude, so anybody's signature will do.
            key = sealed.header.key
            signed = signer is None or (key is not None and (not sealed.header.site or key == signer.public))
            if sealed.message == message and signed:
                return True
        except ProtocolError as error:
            reason = f"and cannot be used: replace or remove it. {error}"
        if not replace:
            raise ProtocolError(f"{path.name!r} is there {reason}")
        return False

    def _make_room(self, path: Path) -> None:
        """Put aside what this coterie cannot judge; without the suffix it is not read again."""
        try:
            header, _ = read_header(_content(path))
            if header.made <= datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"):
                return
        except ProtocolError:
            # It may be of worth to somebody nevertheless.
            pass
        aside = path.with_name(f"{path.name}.aside-{secrets.token_hex(4)}")
        os.replace(path, aside)
        log.warning("%r could not be used and is now %r.", path.name, aside.name)
