"""A key is made once, and its public half is printed for the others."""

from __future__ import annotations

import pytest

from coterie.federated.signing import read_key, read_known_keys


def test_the_line_goes_into_the_list_of_known_keys(run, here):
    outcome = run("keygen", "--name", "north west", "--out", "key")
    assert outcome.code == 0
    (here / "known").write_text(outcome.out)
    assert read_known_keys(here / "known") == {"north west": read_key(here / "key").public}


def test_a_key_is_not_overwritten(run, here):
    run("keygen", "--name", "a", "--out", "key")
    before = (here / "key").read_bytes()
    assert "exists" in run("keygen", "--name", "a", "--out", "key").complaint
    assert (here / "key").read_bytes() == before


def test_what_is_missing_is_said(run, here):
    assert "--name is missing" in run("keygen", "--out", "key").complaint
    assert "--out is missing" in run("keygen", "--name", "a").complaint


def test_a_key_is_not_put_into_a_folder_that_is_passed_on(run, here):
    (here / "box").mkdir()
    (here / "box" / "share-a.coterie").write_text("")
    assert "passed on among the sites" in run("keygen", "--name", "a", "--out", "box/key").complaint
    assert not (here / "box" / "key").exists()


def test_a_key_that_is_there_is_kept_and_no_option_is_advised_that_is_not_there(run, here):
    run("keygen", "--name", "a", "--out", "key")
    complaint = run("keygen", "--name", "a", "--out", "key").complaint
    assert "exists" in complaint
    assert "--force" not in complaint


def test_a_full_disk_leaves_no_half_key_and_is_named(run, here):
    resource = pytest.importorskip("resource", reason="files have no limit here")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        outcome = run("keygen", "--name", "a", "--out", "key")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "'key' cannot be used" in outcome.complaint
    assert not (here / "key").exists()
