"""Messages survive the way, and nothing else is taken for one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coterie.encoding import ColumnPlan
from coterie.federated import codec
from coterie.federated.conclusions import Conclusion, Gain, Mixture, SentCurve
from coterie.federated.messages import (
    VERSION,
    Answer,
    AveragedSite,
    JudgingQuestion,
    MixingQuestion,
    Pairing,
    PeerLoss,
    Products,
    ProtocolError,
    Question,
    Score,
    Share,
    Verdict,
    decode,
    encode,
    kind_of,
    question_key,
)
from coterie.federated.tables import ColumnNote, Columns, Encoding, Moments, Promise

SHARE = Share(
    site="north",
    n_rows=20,
    error=0.5,
    response_mean=1.0,
    response_variance=2.0,
    columns=("age", "dose"),
    target="y",
    family="ridge",
    model=b"\x00model",
    candidates=("linear",),
    seed=0,
    software={"coterie": "0.1.0"},
    spreads=(1.5, 0.25),
)
SCORE = Score(
    site="north",
    sha="aa",
    losses={"north": PeerLoss("aa", 0.5), "south": PeerLoss("bb", None)},
    noise=0.7,
    noise_variance=0.01,
    half_sizes=(10, 10),
)
MEMBERS = (AveragedSite("north", "aa", 1.0, 0.7), AveragedSite("south", "bb", 2.0, 0.6))
PAIRING = Pairing((0, 1), ((0, 0), (1, 1)), (0, 0), ((0, 0), (0, 0)))
MIXING = MixingQuestion(((0, 0),), (((0.1, 0.0),), ((0.1, 1.0),)))
JUDGING = JudgingQuestion((0, 0), MIXING, ((((0.5, 0.5, 0.0),) * 3),) * 2)
QUESTION = Question(MEMBERS, (1.0, 0.0), ((0, 0), (0, 1)), (PAIRING,), MIXING, JUDGING)
VERDICT = Verdict(
    clusters=((-0.1, 0.2),),
    constant=(0.1, 0.2),
    coterie=(0.0, 0.1),
    errors=((1.0, 0.1), (0.9, 0.1), (2.0, 0.1)),
    early=1.2,
    own=1.0,
    others=0.9,
    n_rows=20,
    variance=0.3,
    distance=0.2,
    exact=False,
    inflation=1.0,
    membership=(1.0,),
    line=(0.1, 0.0, -0.2),
    limits=(-1.0, 1.0),
    range=(-3.0, 3.0),
)
# Residuals of three columns on four folds of five rows.
PRODUCTS = Products((((5.0, 1.0, 1.0), (1.0, 4.0, 2.0), (1.0, 2.0, 4.0)),) * 4, (5.0,) * 4)
GRID = ((0.0, *(-1.0,) * 11), *((-2.0,) * 12,) * 11)
HALVES = (((0.5, 0.4),), ((0.5, 0.4), (None, 0.3)))
ANSWER = Answer("north", question_key(QUESTION), HALVES, (GRID, GRID), ((0.1, 0.2),), PRODUCTS, VERDICT)
ERRORS = (1.0, 0.1, 0.9, 0.1, 2.0, 0.1)
CONCLUSION = Conclusion(
    gains=(
        Gain("north", 0, "ridge", 20, *ERRORS, 0.1, 0.1, 0.0, 0.2, "collaborate", "", True, 0.9, -1),
        Gain("south", 0, "ridge", 60, *ERRORS, 0.1, 0.1, 0.0, 0.2, "collaborate", "", True, 0.9, -1),
    ),
    mixtures={
        "north": Mixture({"north": 0.75, "south": 0.25}, (0.1, 0.0, -0.2), (-1.0, 1.0), (-3.0, 3.0)),
        "south": Mixture({"south": 1.0}, (0.0, 0.0, 0.0), (0.0, 0.0)),
    },
    models={"north": "aa", "south": "bb"},
    rule="held-out",
    clear=True,
    curves={"held-out": SentCurve("loss", (1, 2), (1.0, None), 1)},
    left_out={"west": "It did not score."},
    notes=(),
    rounds=3,
    settings={"n_clusters": '"auto"'},
)
MOMENTS = Moments(
    site="north",
    n_rows=20,
    columns=("age",),
    target="y",
    schema=b"agreed",
    halves=((5.0, 0.1, -0.2, 4.0, 0.3, 2.0), (5.0, 0.2, -0.1, 3.0, 0.4, -1.0)),
    promise=Promise(1.0, 1e-6),
    software={"coterie": "0.2.0"},
)
NOTE = ColumnNote("colour", "category", ("red", "blue"), True, False, None, None)
COLUMNS = Columns(
    "north", ColumnNote("y", "number", (), False, False, 2.0, 3.0), (NOTE,), 10, {"coterie": "0"}
)
PLAN = ColumnPlan("colour", "category", "as agreed", levels=("red", "blue"), other=True, indicator=True)
ENCODING = Encoding("y", (PLAN,), ("north", "south"), ("A note.",))
MESSAGES = (SHARE, SCORE, QUESTION, ANSWER, CONCLUSION, MOMENTS, COLUMNS, ENCODING)


def changed(message, change):
    """Return the bytes of a message whose parsed JSON was changed."""
    outer = json.loads(encode(message))
    change(outer)
    return json.dumps(outer).encode()


@pytest.mark.parametrize("message", MESSAGES, ids=kind_of)
def test_a_message_survives_the_way(message):
    assert decode(encode(message)) == message
    assert decode(encode(message), kind_of(message)) == message
    assert encode(decode(encode(message))) == encode(message)


def test_numbers_survive_to_the_last_bit():
    odd = replace(SHARE, error=0.1 + 0.2, response_mean=-1 / 3)
    assert decode(encode(odd)) == odd


@pytest.mark.parametrize("message", MESSAGES, ids=kind_of)
def test_a_missing_and_an_extra_field_are_named(message):
    name = next(iter(json.loads(encode(message))["body"]))
    with pytest.raises(ProtocolError, match=f"'{name}' of .* is missing"):
        decode(changed(message, lambda outer: outer["body"].pop(name)))
    with pytest.raises(ProtocolError, match=r"'rows' of .* is not known"):
        decode(changed(message, lambda outer: outer["body"].update(rows=[[1, 2]])))


@pytest.mark.parametrize("version", [VERSION + 1, 0, -1, 10**30])
def test_another_version_is_refused_by_name(version):
    with pytest.raises(ProtocolError, match="use the same version"):
        decode(changed(SHARE, lambda outer: outer.update(coterie=version)))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_rows", "20"),
        ("n_rows", 20.5),
        ("n_rows", True),
        ("n_rows", 3),
        ("n_rows", 10**20),
        ("error", None),
        ("error", "NaN"),
        ("error", -1.0),
        ("error", 1e200),
        ("error", 10**400),
        ("columns", "age"),
        ("columns", []),
        ("columns", ["age", "age"]),
        ("columns", [1]),
        ("site", ""),
        ("site", " north"),
        ("site", "a\nb"),
        ("site", "x" * 101),
        ("model", "not base64!"),
        ("model", ""),
        ("model", "é"),
        ("software", {"coterie": 1}),
        ("software", ["coterie"]),
        ("target", "x" * 1000),
        ("seed", -1),
        ("spreads", [1.0]),
    ],
)
def test_a_field_of_another_kind_is_refused(name, value):
    with pytest.raises(ProtocolError):
        decode(changed(SHARE, lambda outer: outer["body"].__setitem__(name, value)))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_are_not_finite_are_refused(number):
    text = encode(SHARE).replace(b'"error":0.5', f'"error":{number}'.encode())
    with pytest.raises(ProtocolError, match="finite"):
        decode(text)


def test_a_number_that_is_not_finite_is_not_sent():
    with pytest.raises(ProtocolError, match="not finite"):
        encode(replace(SHARE, error=float("inf")))


def test_a_field_that_stands_twice_is_refused():
    text = encode(SHARE).replace(b'"n_rows":20', b'"n_rows":20,"n_rows":30')
    with pytest.raises(ProtocolError, match="twice"):
        decode(text)


def test_another_kind_than_expected_is_refused():
    with pytest.raises(ProtocolError, match="must be score"):
        decode(encode(SHARE), "score")
    with pytest.raises(ProtocolError, match="must be one of"):
        decode(changed(SHARE, lambda outer: outer.update(kind=["share"])))


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 200_000, b'{"coterie": 1}', b"1" * 10_000]
)
def test_what_is_no_message_is_refused(text):
    with pytest.raises(ProtocolError):
        decode(text)


def test_a_message_that_is_too_large_is_not_parsed(monkeypatch):
    monkeypatch.setattr("coterie.federated.codec.MOST_BYTES", 100)
    with pytest.raises(ProtocolError, match="at most 100 are read"):
        decode(encode(SHARE))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["labellings"].append([0]),
        lambda body: body["labellings"].append([0, 2]),
        lambda body: body["labellings"].append([0, -1]),
        lambda body: body["members"].reverse(),
        lambda body: body["members"].append(body["members"][1]),
        lambda body: body["pairings"][0]["picks"].pop(),
        lambda body: body["pairings"][0].update(picks=[[0, 2], [0, 0]]),
        lambda body: body.update(labellings=[[0, 0]] * 201),
        lambda body: body.update(members=[]),
        lambda body: body["members"][0].update(weight=0.0),
        lambda body: body.update(units=[-1.0, 0.0]),
        lambda body: body["mixing"].update(labellings=[]),
        lambda body: body["mixing"].update(ratios=[[], []]),
        lambda body: body["mixing"].update(ratios=[[[-1.0, 0.0]], [[0.1, 0.0]]]),
        lambda body: body["judging"].update(labels=[0]),
        lambda body: body["judging"].update(weights=[]),
        lambda body: body["judging"]["weights"][0][0].pop(),
    ],
)
def test_a_question_out_of_range_is_refused(change):
    with pytest.raises(ProtocolError):
        decode(changed(QUESTION, lambda outer: change(outer["body"])))


def test_negative_losses_are_refused():
    with pytest.raises(ProtocolError, match="negative"):
        decode(changed(SCORE, lambda outer: outer["body"]["losses"]["south"].update(value=-0.1)))
    with pytest.raises(ProtocolError, match="negative"):
        decode(changed(ANSWER, lambda outer: outer["body"].update(halves=[[[-1.0, 0.0]]])))


def test_a_site_scores_its_own_model():
    with pytest.raises(ProtocolError, match="its own"):
        replace(SCORE, sha="cc")
    with pytest.raises(ProtocolError, match="own model"):
        replace(SCORE, losses={"south": PeerLoss("bb", 1.0)})


def test_a_site_predicts_as_its_verdict_says():
    # What the own model is kept within counts only where it predicts alone.
    with_others = replace(CONCLUSION.mixtures["north"], range=None)
    by_itself = Mixture({"north": 1.0}, (0.0, 0.0, 0.0), (0.0, 0.0), (-3.0, 3.0))
    assert CONCLUSION.mixture("north") == with_others
    assert CONCLUSION.mixture("north", using="alone") == by_itself
    alone = replace(CONCLUSION.gains[0], verdict="stay alone")
    staying = replace(CONCLUSION, gains=(alone, CONCLUSION.gains[1]))
    assert staying.mixture("north").weights == {"north": 1.0}
    assert staying.mixture("north", using="others") == with_others
    assert CONCLUSION.n_clusters == 1
    with pytest.raises(ProtocolError, match="left out: It did not score"):
        CONCLUSION.mixture("west")
    with pytest.raises(ProtocolError, match="no site 'east'"):
        CONCLUSION.mixture("east")
    with pytest.raises(ValueError, match="'using' option must be one of"):
        CONCLUSION.mixture("north", using="all")


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["mixtures"].pop("south"),
        lambda body: body["mixtures"]["south"].update(weights={}),
        lambda body: body["mixtures"]["south"].update(weights={"south": 0.5}),
        lambda body: body["mixtures"]["south"].update(weights={"south": 2.0, "north": -1.0}),
        lambda body: body["mixtures"]["south"].update(weights={"stranger": 1.0}),
        lambda body: body["mixtures"]["south"].update(limits=[1.0, -1.0]),
    ],
)
def test_a_mixture_that_is_none_is_refused(change):
    with pytest.raises(ProtocolError):
        decode(changed(CONCLUSION, lambda outer: change(outer["body"])))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["products"]["folds"][0].pop(),
        lambda body: body["products"].update(folds=[], counts=[]),
        lambda body: body["products"].update(counts=[1.0] * 3),
        lambda body: body["products"].update(counts=[-1.0] * 4),
        lambda body: body["likelihoods"][0][0].pop(),
        lambda body: body["likelihoods"][0][0].__setitem__(0, 5.0),
        lambda body: body["verdict"].update(variance=0.0),
        lambda body: body["verdict"].update(distance=-1.0),
        lambda body: body["verdict"].update(inflation=0.0),
        lambda body: body["verdict"].update(limits=[1.0, 0.0]),
        lambda body: body["verdict"].update(range=[1.0, 0.0]),
    ],
)
def test_an_answer_out_of_range_is_refused(change):
    with pytest.raises(ProtocolError):
        decode(changed(ANSWER, lambda outer: change(outer["body"])))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=100).map(str.encode))
def test_any_bytes_are_refused_with_a_sentence(content):
    with pytest.raises(ProtocolError):
        decode(content)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(MESSAGES), st.data())
def test_a_message_with_anything_in_a_field_is_read_or_refused(message, data):
    outer = json.loads(encode(message))
    name = data.draw(st.sampled_from(sorted(outer["body"])))
    outer["body"][name] = data.draw(json_values)
    try:
        read = decode(json.dumps(outer).encode())
    except ProtocolError:
        return
    assert decode(encode(read)) == read


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(MESSAGES), st.data())
def test_a_message_that_was_changed_or_cut_is_read_or_refused(message, data):
    content = bytearray(encode(message))
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:place]
    else:
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    try:
        read = decode(bytes(content))
    except ProtocolError:
        return
    assert decode(encode(read)) == read


@pytest.mark.parametrize("text", [b"[" * 3_000, b'{"a":' + b"[]," * 3_000, b"1," * 3_000])
def test_many_small_parts_are_refused_before_they_are_parsed(text, monkeypatch):
    monkeypatch.setattr(codec, "MOST_LISTS", 1_000)
    monkeypatch.setattr(codec, "MOST_ITEMS", 2_000)
    with pytest.raises(ProtocolError, match="too many parts"):
        codec.parse(text, "message")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"halves": ((1.0,), (1.0,))}, "do not fit its 1 columns"),
        ({"n_rows": 3}, "needs 4 rows"),
        ({"schema": b""}, "need a schema"),
        ({"columns": ()}, "must have 1 to"),
        ({"columns": ("age", "age")}, "one name"),
    ],
)
def test_moments_that_make_no_sense_are_refused(changes, sentence):
    with pytest.raises(ProtocolError, match=sentence):
        replace(MOMENTS, **changes)


def test_private_moments_are_told_from_exact_ones():
    exact = replace(MOMENTS, promise=None, schema=b"")
    assert decode(encode(exact)).promise is None
    assert exact.sha != MOMENTS.sha
