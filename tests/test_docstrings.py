"""Every public name is documented whole: parameters, returns, shapes."""

import inspect

import pytest
from numpydoc.validate import validate

import coterie
from coterie import candidates, datasets, displays, records

# No extended summary, "see also" or example is demanded of everything; one-line summaries open the docstring.
LEFT_OPEN = {"EX01", "SA01", "ES01", "GL01", "GL02", "GL03", "GL08", "RT02", "SA04", "YD01"}
RECORDS = ("Selection", "Exchange", "Partition", "Collaboration", "Curve")


def public_names():
    names = [f"coterie.{name}" for name in coterie.__all__ if name != "__version__"]
    names += [f"coterie.datasets.{name}" for name in datasets.__all__ if name != "STRESS_SETTINGS"]
    names += [f"coterie.displays.{name}" for name in displays.__all__]
    names += [f"coterie.records.{name}" for name in RECORDS]
    names.append("coterie.candidates.make_candidates")
    for module, owner in ((coterie, "coterie"), (displays, "coterie.displays")):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing):
                # What a class inherits inside coterie is documented whole, too.
                own = [base for base in thing.__mro__ if base.__module__.startswith("coterie.")]
                members = {name: member for base in reversed(own) for name, member in vars(base).items()}
                methods = [
                    m for m, member in members.items() if not m.startswith("_") and inspect.isroutine(member)
                ]
                names += [f"{owner}.{name}.{method}" for method in methods if "set_" not in method]
    return names


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_is_documented(name):
    faults = [(code, text) for code, text in validate(name)["errors"] if code not in LEFT_OPEN]
    if name == "coterie.RowSource":
        # Nobody makes a protocol: its arguments are Python's own.
        faults = [fault for fault in faults if fault[0] != "PR01"]
    assert not faults


def test_every_package_states_its_idea_before_any_import():
    for module in (coterie, candidates, datasets, displays, records):
        assert len(module.__doc__.splitlines()) >= 3
