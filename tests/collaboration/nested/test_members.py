from types import SimpleNamespace

import numpy as np

from coterie.collaboration.nested import members as M


def view_of(n_numbers=3, n_context=6):
    return SimpleNamespace(
        description=SimpleNamespace(numbers=np.zeros((4, n_numbers))), context=np.zeros((10, n_context))
    )


def table_of(n_coteries=2, has_ids=True):
    return SimpleNamespace(n_coteries=n_coteries, has_ids=has_ids)


def possible(trees="full", **options):
    return {member.name: member for member in M.possible_members(table_of(**options), view_of(), trees)}


def test_each_member_is_told_what_its_name_says():
    members = possible()
    assert [name for name, member in members.items() if not member.trees] == [M.LINE, M.COTERIE_LINE]
    columns_read = {name: np.flatnonzero(member.mask).tolist() for name, member in members.items()}
    assert columns_read[M.TREES_OF_ALL] == columns_read[M.BESIDE_LINE] == []
    # Three numbers, a coterie at some resolution, the chosen one, the id.
    assert columns_read[M.TREES_OF_COTERIE] == [4]
    assert columns_read[M.WITH_ID] == columns_read[M.ID_BESIDE_LEVEL] == [5]
    assert columns_read[M.FULL_CONTEXT] == [0, 1, 2, 3, 4, 5]
    assert columns_read[M.RANDOM_CUTS] == [0, 1, 2]


def test_without_coteries_or_ids_nobody_is_told_of_them():
    one = possible(n_coteries=1)
    assert not {M.COTERIE_LINE, M.TREES_OF_COTERIE} & set(one)
    many = possible(has_ids=False)
    assert not {M.WITH_ID, M.ID_BESIDE_LEVEL} & set(many)
    assert np.flatnonzero(many[M.TREES_OF_COTERIE].mask).tolist() == [5]


def test_less_effort_is_one_kind_of_trees():
    assert list(possible("none")) == [M.LINE, M.COTERIE_LINE]
    assert list(possible("fast")) == [M.LINE, M.COTERIE_LINE, M.WITH_ID]
    assert list(possible("fast", has_ids=False)) == [M.LINE, M.COTERIE_LINE, M.FULL_CONTEXT]


def test_who_is_told_the_id_is_known():
    members = possible()
    assert {name for name, member in members.items() if member.mask[-1]} == M.KNOW_THE_ID
