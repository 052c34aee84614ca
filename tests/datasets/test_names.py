from coterie.datasets.simulated import learner_names


def test_names_have_equal_width_and_sort_in_order() -> None:
    for n in (1, 10, 100, 101):
        names = learner_names(n).tolist()
        assert len({len(name) for name in names}) == 1
        assert names == sorted(names)
        assert len(set(names)) == n
    assert learner_names(30)[7] == "learner 07"
    assert learner_names(101)[7] == "learner 007"
