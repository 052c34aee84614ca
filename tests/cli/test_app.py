"""The command itself: version, help, start-up without the heavy libraries."""

import subprocess
import sys

import coterie


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "coterie.cli", *arguments], capture_output=True, text=True, check=False
    )


def test_the_version_is_the_library_s():
    assert run("--version").stdout.strip() == f"coterie {coterie.__version__}"


def test_an_unknown_command_exits_with_2_and_no_traceback():
    shown = run("fitt")
    assert shown.returncode == 2
    assert "Traceback" not in shown.stderr


def test_help_waits_for_none_of_the_heavy_libraries():
    code = (
        "import sys; from coterie.cli import app; "
        "print([m for m in ('numpy', 'sklearn', 'polars') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
