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
# Bytes of all files: a thousand sites with forests of two megabytes each.
MOST_IN_ALL = 2 * 2**30
# Characters of a site in a file's name.
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
        """Return the message of one site's sums of squares and products of x and y; None: it sent none."""
        return next((message for message in self.moments if message.site == site), None)

    def share_of(self, site: str) -> Share:
        """Return the share of one site; refuse where the folder has none."""
        shares_of_site = [share for share in self.shares if share.site == site]
        if not shares_of_site:
            raise ProtocolError(f"The folder has no share of {site!r}: run `coterie share` first.")
        return shares_of_site[0]


def file_name(message: Message) -> str:
    """Return the name of a message's file: its kind, its site, and for questions and answers their key.

    A message always has the same name, so that a newer one takes the place of an older one. Sites' names are
    quoted or hashed, for every file system must take them.
    """
    quoted_site = quote(speaker_of(message), safe="").replace("~", "%7E")
    if len(quoted_site) > LONGEST_NAME:
        quoted_site = digest(speaker_of(message).encode())[:32]
    parts = [kind_of(message), quoted_site]
    if isinstance(message, Question):
        parts.append(question_key(message)[:16])
    if isinstance(message, Answer):
        parts.append(message.question[:16])
    return "-".join(part for part in parts if part) + SUFFIX


def _content(path: Path) -> bytes:
    """Return the bytes of a plain file; refuse links, pipes, and files that are too large to read.

    Anybody may put files into the folder: reading a pipe would never end.
    """
    try:
        # Of a link itself, not of the file behind it, which could be anywhere on this machine.
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            raise ProtocolError("It is no plain file.")
        if status.st_size > MOST_BYTES + LONGEST_HEADER:
            raise ProtocolError(f"It has {status.st_size} bytes: at most {MOST_BYTES} are read.")
        return path.read_bytes()
    except OSError as error:
        raise ProtocolError(f"It cannot be read ({error.strerror or error}).") from None


def _beyond_the_most(paths: Sequence[Path]) -> dict[str, str]:
    """Return the files that are not read since all files have too many bytes, with the reason.

    Sizes are added up from the smallest file on, so that no small file is left out for a large one.
    """
    sizes = {}
    for path in paths:
        # Whoever reads the file says why it cannot be looked at.
        with suppress(OSError):
            sizes[path.name] = path.lstat().st_size
    refused, bytes_so_far = {}, 0
    for name, size in sorted(sizes.items(), key=lambda item: (item[1], item[0])):
        bytes_so_far += size
        if bytes_so_far > MOST_IN_ALL:
            refused[name] = (
                f"It has {size} bytes, and with it the files of the folder have more than the {MOST_IN_ALL} "
                "that are read together: remove it, or ask for a smaller model."
            )
    return refused


def _check_pinned(opened_files: Mapping[str, Sealed]) -> dict[str, str]:
    """Return the files that are signed by another key than the share of their site, with the reason.

    The first message of a site, its share, pins its key for all later ones, whether or not keys are known.
    """
    headers = {name: sealed.header for name, sealed in opened_files.items()}
    key_by_site = {header.site: header.key for header in headers.values() if header.kind == "share"}
    return {
        name: f"It is not signed with the key that signed the share of {header.site!r}."
        for name, header in headers.items()
        if header.site and header.key != key_by_site.get(header.site, header.key)
    }


def _answered(
    questions: Mapping[str, Question], answers: Mapping[str, Answer], troubles: dict[str, str]
) -> tuple[Answered, ...]:
    """Sort the answers by their questions; a site has one file, and so one answer, for each.

    ``questions`` go by their keys and ``answers`` by their files. Answers that cannot be used are added to
    ``troubles``, in place, by file.
    """
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
        """Return the paths of the folder's sealed files, sorted by name; refuse too many."""
        paths = sorted(path for path in self.path.iterdir() if path.name.endswith(SUFFIX))
        if len(paths) > MOST_FILES:
            raise ProtocolError(f"The folder {str(self.path)!r} has {len(paths)} files: that is too many.")
        return paths

    def read(self, answers_of: str | None = None) -> FolderContents:
        """Open all files and sort their messages by kind; files that cannot be used are named.

        Parameters
        ----------
        answers_of : str or None, default=None
            Read the answers of this site only, which is all that a site has to know. None: of all.

        Returns
        -------
        FolderContents
            What can be used.
        """
        opened: dict[str, Sealed] = {}
        paths = self._files()
        troubles = _beyond_the_most(paths)
        for path in paths:
            if path.name in troubles:
                continue
            try:
                content = _content(path)
                if answers_of is not None:
                    # Answers of others are skipped by their headers, undecoded: there may be many.
                    header, _ = read_header(content)
                    if header.kind == "answer" and header.site != answers_of:
                        continue
                sealed = unseal(content, self.known_keys)
                # A copy may be an old message, brought back to contradict a new one.
                if path.name != (name := file_name(sealed.message)):
                    raise ProtocolError(f"Its name must be {name!r}: it was renamed, or is a copy.")
                opened[path.name] = sealed
            except ProtocolError as error:
                troubles[path.name] = str(error)
        wrongly_signed = _check_pinned(opened)
        troubles |= wrongly_signed
        messages = {name: sealed.message for name, sealed in opened.items() if name not in wrongly_signed}
        questions = {
            question_key(message): message for message in messages.values() if isinstance(message, Question)
        }
        answers = {name: message for name, message in messages.items() if isinstance(message, Answer)}
        # A conclusion has one name, so there is one at most.
        conclusion_files = [name for name, message in messages.items() if isinstance(message, Conclusion)]
        conclusion = next((message for message in messages.values() if isinstance(message, Conclusion)), None)
        return FolderContents(
            shares=tuple(message for message in messages.values() if isinstance(message, Share)),
            scores=tuple(message for message in messages.values() if isinstance(message, Score)),
            answered=_answered(questions, answers, troubles),
            conclusion=conclusion,
            moments=tuple(message for message in messages.values() if isinstance(message, Moments)),
            columns=tuple(message for message in messages.values() if isinstance(message, Columns)),
            encoding=next((message for message in messages.values() if isinstance(message, Encoding)), None),
            troubles=troubles,
            concluder=opened[conclusion_files[0]].header.key if conclusion_files else None,
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
            # A fresh file must not exist yet: whoever writes at the same time is not overwritten.
            write_bytes(path, seal(message, signer), fresh=not taken)
        except FileExistsError:
            raise ProtocolError(f"{path.name!r} has just been written by somebody else.") from None
        return True

    def _is_there(self, path: Path, message: Message, signer: Signer | None, *, replace: bool) -> bool:
        """Tell whether the folder has the same message, signed well enough; else it must be replaced.

        Raise an error where another message or a damaged file has this name, and nobody asked to replace it.
        """
        try:
            sealed, reason = unseal(_content(path), self.known_keys), "with other content and stays as it is."
            # A message without a site is a question, encoding or conclusion: anybody's signature will do.
            key = sealed.header.key
            is_signed_well = signer is None or (
                key is not None and (not sealed.header.site or key == signer.public)
            )
            if sealed.message == message and is_signed_well:
                return True
        except ProtocolError as error:
            reason = f"and cannot be used: replace or remove it. {error}"
        if not replace:
            raise ProtocolError(f"{path.name!r} is there {reason}")
        return False

    def _make_room(self, path: Path) -> None:
        """Rename a file that is newer than now, or that this coterie cannot read, instead of losing it.

        Without the suffix it is not read again. Older files are left alone, for they will be overwritten.
        """
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
