"""A sealed file is whole, ours and signed, or it is refused with a sentence."""

from __future__ import annotations

import contextlib
import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.federated import ProtocolError
from coterie.federated.sealing import FORMAT_VERSION, seal, unseal
from coterie.federated.signing import make_key, read_key

from .test_messages import ANSWER, CONCLUSION, MESSAGES, QUESTION, SHARE


@pytest.fixture(scope="module")
def signers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    for name in ("north", "south"):
        make_key(folder / name)
    return {name: read_key(folder / name) for name in ("north", "south")}


def with_header(content: bytes, **changes) -> bytes:
    line, _, body = content.partition(b"\n")
    return json.dumps({**json.loads(line), **changes}).encode() + b"\n" + body


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_what_is_sealed_can_be_opened(message, signers):
    assert unseal(seal(message)).message == message
    signed = unseal(seal(message, signers["north"]))
    assert signed.message == message
    assert signed.header.signature.key == signers["north"].public


def test_the_first_line_tells_what_it_is():
    header = unseal(seal(SHARE)).header
    assert (header.kind, header.site) == ("share", "north")
    assert set(header.software) >= {"coterie", "python", "numpy", "scikit-learn"}
    assert len(header.sha256) == 64


def test_a_file_that_was_cut_off_is_refused():
    content = seal(SHARE)
    for length in (0, 1, 50, len(content) // 2, len(content) - 1):
        with pytest.raises(ProtocolError):
            unseal(content[:length])
    with pytest.raises(ProtocolError, match="copy it again"):
        unseal(content + b" ")


def test_every_bit_of_the_message_counts():
    content = seal(SHARE)
    start = content.index(b"\n") + 1
    for place in range(start, len(content), 7):
        changed = bytearray(content)
        changed[place] ^= 4
        with pytest.raises(ProtocolError, match="was changed"):
            unseal(bytes(changed))


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}\n", b"x" * 50_000, pickle.dumps(SHARE), b"PK\x03\x04\n"]
)
def test_what_is_no_sealed_file_is_refused(content):
    with pytest.raises(ProtocolError):
        unseal(content)


def test_another_version_is_refused_by_name():
    with pytest.raises(ProtocolError, match="use the same version"):
        unseal(with_header(seal(SHARE), version=FORMAT_VERSION + 1))


def test_a_message_cannot_be_sealed_for_another(signers):
    with pytest.raises(ProtocolError, match="speaks for 'north'"):
        unseal(with_header(seal(SHARE), site="south"))
    with pytest.raises(ProtocolError, match="must be score"):
        unseal(with_header(seal(SHARE), kind="score"))
    with pytest.raises(ProtocolError, match="signature is wrong"):
        unseal(with_header(seal(SHARE, signers["north"]), made="2020-01-01T00:00:00Z"))


def test_only_known_keys_are_accepted_where_there_is_a_list(signers):
    known = {name: signer.public for name, signer in signers.items()}
    assert unseal(seal(SHARE, signers["north"]), known).message == SHARE
    with pytest.raises(ProtocolError, match="not signed"):
        unseal(seal(SHARE), known)
    with pytest.raises(ProtocolError, match="not known for 'north'"):
        unseal(seal(SHARE, signers["south"]), known)
    with pytest.raises(ProtocolError, match="not known for 'north'"):
        unseal(seal(ANSWER, signers["north"]), {"south": known["south"]})


def test_whoever_is_known_may_ask_and_conclude(signers):
    known = {"south": signers["south"].public}
    for message in (QUESTION, CONCLUSION):
        assert unseal(seal(message, signers["south"]), known).message == message
        with pytest.raises(ProtocolError, match="not known for anybody"):
            unseal(seal(message, signers["north"]), known)


def test_a_signature_of_other_digits_is_wrong(signers):
    content = seal(SHARE, signers["north"])
    # The third is a point of small order, for which these zeros sign anything.
    odd = ({"key": "zz", "value": "00"}, {"key": "", "value": ""}, {"key": "00" * 32, "value": "00" * 64})
    for signature in odd:
        with pytest.raises(ProtocolError, match="signature is wrong"):
            unseal(with_header(content, signature=signature))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400) | st.text(max_size=100).map(lambda text: f"{text}\n{text}".encode()))
def test_any_bytes_are_refused_with_a_sentence(content):
    with pytest.raises(ProtocolError):
        unseal(content)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(MESSAGES), st.data())
def test_a_file_changed_anywhere_is_read_or_refused(message, data):
    content = bytearray(seal(message))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ProtocolError):
        assert unseal(bytes(content)).message == message


@pytest.mark.parametrize(
    "change", [{"seed": 2**60}, {"columns": ("x0", "x1", "a\tb")}, {"target": "y" * 501}]
)
def test_what_nobody_could_read_is_not_sealed(sites, change):
    with pytest.raises(ProtocolError, match="must be"):
        seal(replace(sites.shares[0], **change))
