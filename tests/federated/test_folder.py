"""The folder: whole files or none, nothing newer is lost, and what a stranger left there harms nobody."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from coterie.federated import Conclusion, ProtocolError, Question, answer, conclude
from coterie.federated import folder as folder_module
from coterie.federated.folder import SealedFolder, file_name
from coterie.federated.messages import encode
from coterie.federated.questions import open_questions
from coterie.federated.sealing import seal, unseal
from coterie.federated.signing import make_key, read_key

from .test_messages import ANSWER, CONCLUSION, QUESTION, SCORE, SHARE


@pytest.fixture
def box(tmp_path) -> SealedFolder:
    (tmp_path / "box").mkdir()
    return SealedFolder(tmp_path / "box")


def files(box: SealedFolder) -> list[str]:
    return sorted(os.listdir(box.path))


def test_what_is_put_is_read(box):
    for message in (SHARE, SCORE, QUESTION, CONCLUSION):
        assert box.put(message)
    contents = box.read()
    assert contents.shares == (SHARE,)
    assert contents.scores == (SCORE,)
    assert [each.question for each in contents.answered] == [QUESTION]
    assert contents.conclusion == CONCLUSION
    assert contents.troubles == {}
    assert contents.share_of("north") == SHARE
    with pytest.raises(ProtocolError, match="no share of 'west'"):
        contents.share_of("west")


def test_the_same_message_is_put_once(box):
    assert box.put(SHARE)
    before = (box.path / file_name(SHARE)).stat().st_mtime_ns
    assert not box.put(SHARE)
    assert not box.put(SHARE, replace=True)
    assert (box.path / file_name(SHARE)).stat().st_mtime_ns == before


def test_another_message_of_the_same_name_is_refused_unless_replaced(box):
    box.put(SHARE)
    with pytest.raises(ProtocolError, match="other content"):
        box.put(replace(SHARE, n_rows=21))
    assert box.read().shares == (SHARE,)
    assert box.put(replace(SHARE, n_rows=21), replace=True)
    assert box.read().shares[0].n_rows == 21
    assert files(box) == [file_name(SHARE)]


def aside(box: SealedFolder) -> list[bytes]:
    return [path.read_bytes() for path in box.path.iterdir() if ".aside-" in path.name]


def test_what_is_newer_is_never_lost(box):
    path = box.path / file_name(SHARE)
    later = seal(SHARE, made=datetime.now(UTC) + timedelta(hours=1))
    path.write_bytes(later)
    with pytest.raises(ProtocolError, match="other content"):
        box.put(replace(SHARE, n_rows=21))
    assert box.put(replace(SHARE, n_rows=21), replace=True)
    assert aside(box) == [later]
    other = seal(SHARE).replace(b'"version":1', b'"version":2')
    path.write_bytes(other)
    assert box.put(SHARE, replace=True)
    assert sorted(aside(box)) == sorted([later, other])
    assert box.read().shares == (SHARE,)
    assert box.read().troubles == {}


def test_a_damaged_file_is_replaced_only_where_asked(box):
    path = box.path / file_name(SHARE)
    for content in (b"nothing", seal(SHARE)[:-10]):
        path.write_bytes(content)
        with pytest.raises(ProtocolError, match="cannot be used"):
            box.put(SHARE)
    assert box.put(SHARE, replace=True)
    assert box.read().shares == (SHARE,)


FORGED = {
    "damaged": b"nothing",
    "cut": seal(CONCLUSION)[:-10],
    "of another version": seal(CONCLUSION).replace(b'"version":1', b'"version":2'),
    "from the future": re.sub(rb'"made":"....', b'"made":"9999', seal(replace(CONCLUSION, notes=("x",)))),
    "a folder": None,
}


@pytest.mark.parametrize("message", [QUESTION, ANSWER, CONCLUSION], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("content", FORGED.values(), ids=FORGED)
def test_no_file_that_cannot_be_used_stands_in_the_way(box, message, content):
    path = box.path / file_name(message)
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    # As `coterie conclude` and `coterie score` put them.
    assert box.put(message, replace=message == CONCLUSION)
    assert unseal(path.read_bytes()).message == message


def test_what_was_put_unsigned_or_with_another_key_can_be_signed(box, tmp_path):
    for name in ("mine", "theirs"):
        make_key(tmp_path / name)
    mine, theirs = read_key(tmp_path / "mine"), read_key(tmp_path / "theirs")
    for message in (QUESTION, ANSWER):
        assert box.put(message)
        assert box.put(message, theirs)
        assert not box.put(message, theirs)
    # Anybody may ask, and only the site may answer.
    assert not box.put(QUESTION, mine)
    assert box.put(ANSWER, mine)
    assert not box.put(ANSWER)


def test_what_a_list_of_keys_refuses_is_put_again(box, tmp_path):
    make_key(tmp_path / "mine")
    mine = read_key(tmp_path / "mine")
    strict = SealedFolder(box.path, {"north": mine.public})
    box.put(QUESTION)
    assert strict.put(QUESTION, mine)
    assert len(strict.read().answered) == 1


def test_a_write_that_fails_leaves_nothing(box, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space.*share-north\.coterie"):
        box.put(SHARE)
    assert files(box) == []


def test_somebody_who_was_quicker_is_not_overwritten(box, monkeypatch):
    # The file appears between the look and the write.
    monkeypatch.setattr(type(box.path), "exists", lambda _: False)
    (box.path / file_name(SHARE)).write_bytes(seal(replace(SHARE, n_rows=99)))
    with pytest.raises(ProtocolError, match="somebody else"):
        box.put(SHARE)
    assert box.read().shares[0].n_rows == 99


@pytest.mark.parametrize("site", ["a/b", "..", ".", "a\\b", "C:", "é", "%2F", "a~b", "x" * 100, "日" * 100])
def test_any_name_of_a_site_is_a_name_of_a_file(box, site):
    share = replace(SHARE, site=site)
    assert box.put(share)
    assert box.read().shares == (share,)
    assert len(files(box)) == 1
    assert len(files(box)[0]) < 200


def test_files_that_cannot_be_used_are_named_and_the_others_read(box, tmp_path):
    box.put(SHARE)
    good = seal(replace(SHARE, site="south"))
    (box.path / "cut.coterie").write_bytes(good[:-10])
    (box.path / "flipped.coterie").write_bytes(good[:-10] + b"X" + good[-9:])
    (box.path / "old.coterie").write_bytes(good.replace(b'"version":1', b'"version":7'))
    (box.path / "empty.coterie").write_bytes(b"")
    (box.path / "notes.txt").write_text("not ours, not read")
    (box.path / "folder.coterie").mkdir()
    (tmp_path / "secret").write_text("secret")
    (box.path / "link.coterie").symlink_to(tmp_path / "secret")
    os.mkfifo(box.path / "pipe.coterie")
    contents = box.read()
    assert contents.shares == (SHARE,)
    assert set(contents.troubles) == {
        f"{name}.coterie" for name in ("cut", "flipped", "old", "empty", "folder", "link", "pipe")
    }
    assert "secret" not in contents.troubles["link.coterie"]


def test_a_file_that_is_too_large_is_not_opened(box, monkeypatch):
    monkeypatch.setattr(folder_module, "MOST_BYTES", 10)
    monkeypatch.setattr(folder_module, "LONGEST_HEADER", 10)
    (box.path / "large.coterie").write_bytes(seal(SHARE))
    assert "at most 10 are read" in box.read().troubles["large.coterie"]


def test_the_largest_files_are_left_out_where_all_are_too_much(box, monkeypatch):
    box.put(SHARE)
    box.put(SCORE)
    sizes = {name: (box.path / name).stat().st_size for name in files(box)}
    monkeypatch.setattr(folder_module, "MOST_IN_ALL", min(sizes.values()))
    contents = box.read()
    assert len(contents.shares) + len(contents.scores) == 1
    ((name, why),) = contents.troubles.items()
    assert name == max(sizes, key=lambda name: sizes[name])
    assert "that are read together: remove it" in why


def test_too_many_files_are_refused(box, monkeypatch):
    monkeypatch.setattr(folder_module, "MOST_FILES", 1)
    box.put(SHARE)
    box.put(replace(SHARE, site="south"))
    with pytest.raises(ProtocolError, match="too many"):
        box.read()


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ProtocolError, match="no folder"):
        SealedFolder(tmp_path / "none")


def test_a_copy_under_another_name_is_not_used(box):
    # As programs that keep folders in step make them, and whoever brings back what was said once.
    box.put(SHARE)
    box.put(SCORE)
    (box.path / "share-north (conflict).coterie").write_bytes(seal(replace(SHARE, n_rows=21)))
    (box.path / "score-north-old.coterie").write_bytes(seal(replace(SCORE, noise=SCORE.noise * 2)))
    contents = box.read()
    assert (contents.shares, contents.scores) == ((SHARE,), (SCORE,))
    assert "must be 'share-north.coterie'" in contents.troubles["share-north (conflict).coterie"]
    assert "must be 'score-north.coterie'" in contents.troubles["score-north-old.coterie"]


def test_a_conclusion_under_a_later_name_does_not_win(box):
    box.put(CONCLUSION)
    forged = replace(CONCLUSION, notes=("Forged.",))
    (box.path / "conclusion-z.coterie").write_bytes(seal(forged))
    (box.path / "z.coterie").write_bytes(seal(forged))
    contents = box.read()
    assert contents.conclusion == CONCLUSION
    assert set(contents.troubles) == {"conclusion-z.coterie", "z.coterie"}


def test_later_files_must_be_signed_as_the_share_was(box, tmp_path):
    for name in ("mine", "theirs"):
        make_key(tmp_path / name)
    box.put(SHARE, read_key(tmp_path / "mine"))
    box.put(SCORE, read_key(tmp_path / "theirs"))
    contents = box.read()
    assert contents.scores == ()
    assert "the key that signed the share" in contents.troubles["score-north.coterie"]
    box.put(SCORE, read_key(tmp_path / "mine"), replace=True)
    assert box.read().scores == (SCORE,)


def test_answers_that_fit_no_question_are_not_used(box, sites):
    question = conclude(sites.shares, sites.scores)
    assert isinstance(question, Question)
    first, second, third, *_ = sites.replies(question)
    box.put(question)
    box.put(first)
    box.put(replace(second, halves=second.halves[1:]))
    twice = replace(third, halves=tuple(((1.0, 1.0),) * len(h) for h in third.halves))
    (box.path / "again.coterie").write_bytes(seal(twice))
    box.put(ANSWER)
    contents = box.read()
    assert set(contents.answered[0].answers) == {first.site}
    why = " ".join(contents.troubles.values())
    assert "did not answer the whole question" in why
    assert "it was renamed, or is a copy" in why
    assert "not in the folder" in why


def test_a_site_reads_no_answers_but_its_own(box, sites):
    question = conclude(sites.shares, sites.scores)
    box.put(question)
    for reply in sites.replies(question):
        box.put(reply)
    assert len(box.read().answered[0].answers) == 8
    assert list(box.read(answers_of="learner 03").answered[0].answers) == ["learner 03"]


def test_a_folder_comes_to_the_conclusion_of_messages(box, sites, conclusion):
    for message in (*sites.shares, *sites.scores):
        box.put(message)
    for _ in range(12):
        contents = box.read()
        outcome = conclude(contents.shares, contents.scores, contents.answered)
        box.put(outcome, replace=True)
        if isinstance(outcome, Conclusion):
            break
        contents = box.read()
        for name, site in sites.sites.items():
            unanswered = open_questions(contents, name)
            assert len(unanswered) == 1
            box.put(answer(site, contents.shares, unanswered[0]))
            assert open_questions(box.read(), name) == []
    assert encode(box.read().conclusion) == encode(conclusion)
