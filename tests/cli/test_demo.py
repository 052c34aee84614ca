from pathlib import Path


def test_the_demo_ends_with_the_path_of_its_report(run, here):
    outcome = run("demo", "--out", "demo")
    assert outcome.code == 0
    assert "The 30 learners fall into 3 coteries" in outcome.out
    last = outcome.out.strip().split("\n")[-1]
    assert last == "demo/report.html"
    assert "<html" in Path(last).read_text()
    assert "has results already" in run("demo", "--out", "demo").complaint
