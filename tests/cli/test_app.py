"""The command itself: version, help, start-up without the heavy libraries."""

import os
import re
import subprocess
import sys
from typing import Any

import pytest
import typer

import coterie
from coterie.cli import main
from coterie.cli.app import app


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "coterie.cli", *arguments], capture_output=True, text=True, check=False
    )


def test_the_version_is_the_library_s():
    assert run("--version").stdout.strip() == f"coterie {coterie.__version__}"


def test_an_unknown_command_exits_with_2_and_no_traceback():
    output = run("fitt")
    assert output.returncode == 2
    assert "Traceback" not in output.stderr


def helps(command: Any) -> list[str]:
    return [option.help for option in command.params if getattr(option, "opts", ["-"])[0].startswith("-")]


def test_help_speaks_in_short_sentences_and_in_the_order_of_use():
    commands = typer.main.get_command(app).commands
    assert list(commands)[:6] == ["demo", "fit", "inspect", "predict", "admit", "report"]
    assert list(commands)[-3:] == ["score", "conclude", "status"]
    for name, command in commands.items():
        for text in [*helps(command), *(command.help or "").split("\n\n")]:
            sentences = re.split(r"(?<=[.!?]) +", " ".join(text.split()))
            assert text.strip().endswith("."), (name, text)
            assert all(len(sentence.split()) <= 35 for sentence in sentences), (name, text)


def test_a_shell_completes_commands(monkeypatch):
    environment = {
        **os.environ,
        "_COTERIE_COMPLETE": "complete_bash",
        "COMP_WORDS": "coterie re",
        "COMP_CWORD": "1",
    }
    code = "import sys; sys.argv = ['coterie']; from coterie.cli import main; main()"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment
    )
    assert output.stdout.split() == ["report"]


def test_help_waits_for_none_of_the_heavy_libraries():
    code = (
        "import sys; from coterie.cli import app; "
        "print([m for m in ('numpy', 'sklearn', 'polars') if m in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert output.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["fit", "predict model.coterie", "admit model.coterie", "share", "score"])
def test_a_mistyped_file_waits_for_none_of_them_either(tmp_path, command):
    (tmp_path / "sales.csv").write_text("")
    (tmp_path / "model.coterie").write_text("")
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('numpy', 'sklearn', 'polars')));"
        f"sys.argv = ['coterie', *'{command}'.split(), 'sale.csv', *sys.argv[1:]]; "
        "from coterie.cli import main; main()"
    )
    options = {
        "fit": ["--target", "y", "--group", "g", "--no-report"],
        "share": ["--name", "a", "--target", "y"],
    }
    arguments = [sys.executable, "-c", code, *options.get(command, ["--name", "a"] * (command == "score"))]
    output = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert output.stderr == "coterie: There is no file 'sale.csv': did you mean 'sales.csv'?\n"
    assert output.returncode == 2


def test_a_missing_extra_is_named():
    code = (
        "import sys; sys.modules['typer'] = None; sys.argv = ['coterie', 'fit']; "
        "from coterie.cli import main; main()"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert output.returncode == 2
    assert output.stderr == "coterie: The command line needs typer: install coterie's extra 'cli'.\n"


def test_a_command_that_needs_polars_names_the_extra(tmp_path):
    (tmp_path / "t.csv").write_text("y,site\n1,a\n")
    arguments = ["coterie", "fit", "t.csv", "--target", "y", "--group", "site", "--no-report"]
    code = (
        f"import sys; sys.modules['polars'] = None; sys.argv = {arguments}; "
        "from coterie.cli import main; main()"
    )
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert output.returncode == 2
    assert output.stderr == "coterie: The command line needs polars: install coterie's extra 'cli'.\n"


def end_of(monkeypatch, capsys, error, **environment):
    """Run a command that fails in its own way; return its exit code and complaint."""

    def fail(*arguments):
        raise error

    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("coterie.cli.inspect.describe", fail)
    monkeypatch.setattr(sys, "argv", ["coterie", "inspect", "model.coterie"])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code, capsys.readouterr().err


def test_an_error_that_nobody_foresaw_is_a_sentence_that_asks_for_a_report(monkeypatch, capsys):
    code, said = end_of(monkeypatch, capsys, RuntimeError("out of\ncheese"))
    assert code == 1
    assert said.startswith(
        "coterie: This is a fault in coterie (RuntimeError: out of cheese): please report it"
    )
    assert said.count("\n") == 1
    with pytest.raises(RuntimeError, match="out of"):
        end_of(monkeypatch, capsys, RuntimeError("out of cheese"), COTERIE_TRACEBACK="1")


def test_a_full_memory_and_a_bad_disk_are_sentences(monkeypatch, capsys):
    assert end_of(monkeypatch, capsys, MemoryError()) == (
        2,
        "coterie: The memory is full: give fewer rows, or read Parquet files with --memory.\n",
    )
    code, said = end_of(monkeypatch, capsys, OSError(5, "Input/output error", "x"))
    assert (code, said) == (
        2,
        "coterie: 'x' cannot be used (Input/output error): check the path and the disk.\n",
    )


def test_a_wrong_option_is_one_sentence(monkeypatch, capsys):
    for arguments in (["fit", "--nosuch"], ["nosuch"], ["predict"], ["fit", "t.csv", "--seed", "x"]):
        monkeypatch.setattr(sys, "argv", ["coterie", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        said = capsys.readouterr().err
        assert said.startswith("coterie: ")
        assert said.count("\n") == 1
        assert "--help`" in said
