"""Importing coterie needs none of the extras, and the layers and versions are what they claim."""

import subprocess
import sys
import tomllib
from pathlib import Path

import coterie

ROOT = Path(__file__).parents[1]
EXTRAS = (
    "matplotlib",
    "polars",
    "pyarrow",
    "fastexcel",
    "jinja2",
    "typer",
    "rich",
    "dask",
    "torch",
    "flwr",
    "onnx",
    "onnxruntime",
    "cryptography",
)


def test_the_library_imports_without_any_extra():
    code = f"""
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in {EXTRAS!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Missing())
import coterie, coterie.displays, coterie.datasets, coterie.report
import coterie.federated, coterie.federated.folder, coterie.federated.signing
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_flower_without_flower_names_the_extra():
    code = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] == "flwr":
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Missing())
try:
    import coterie.flower
except ModuleNotFoundError as error:
    assert "install coterie's extra 'flower'" in str(error), error
else:
    raise AssertionError("flwr was not missed")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_flower_has_an_extra_of_its_own():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert not any(need.startswith("flwr") for need in extras["federated"])
    assert any(need.startswith("flwr") for need in extras["flower"])
    assert "coterie[federated]" in extras["flower"]


def test_skops_is_imported_by_nothing_but_save_and_load():
    code = "import sys, coterie; assert 'skops' not in sys.modules, 'skops was imported'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_version_stands_in_one_form_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == coterie.__version__
    assert f"version: {coterie.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {coterie.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_conda_recipe_says_what_the_project_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    assert f'version: "{project["version"]}"' in recipe
    run = recipe.partition("  run:\n")[2].partition("\n\n")[0]
    needs = {line.strip(" -").replace(" ", "") for line in run.splitlines()}
    assert needs == {*project["dependencies"], f"python{project['requires-python']}"}


def test_every_public_name_exists():
    for name in coterie.__all__:
        assert hasattr(coterie, name)
