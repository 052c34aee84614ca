"""Every format is read alike; what cannot be read is refused in one sentence."""

import gzip
import os
import sys

import polars as pl
import pytest

from coterie.cli.errors import CommandError
from coterie.cli.files import stem_of
from coterie.cli.reading import read_tables

from .workbooks import write_workbook

TABLE = pl.DataFrame({"a": [1, 2], "b": ["x", None], "c": [1.5, None]})


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return str(path)


def complaint(*patterns, **options):
    with pytest.raises(CommandError) as caught:
        read_tables([str(pattern) for pattern in patterns], **options)
    return str(caught.value)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "csv.gz", "parquet", "arrow", "feather", "stream.arrow"])
def test_every_format_gives_the_same_table(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    if suffix == "parquet":
        TABLE.write_parquet(path)
    elif suffix == "stream.arrow":
        TABLE.write_ipc_stream(path)
    elif suffix in ("arrow", "feather"):
        TABLE.write_ipc(path)
    elif suffix == "csv.gz":
        path.write_bytes(gzip.compress(TABLE.write_csv().encode()))
    else:
        TABLE.write_csv(path, separator="\t" if suffix == "tsv" else ",")
    assert read_tables([str(path)]).equals(TABLE)


def test_na_in_many_spellings_is_missing(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1,u\nNA,NaN\nnull,N/A\n,v\n")
    assert read_tables([path]).rows() == [(1, "u"), (None, None), (None, None), (None, "v")]


def test_a_type_that_shows_late_is_found(tmp_path):
    path = write(tmp_path / "t.csv", "a\n" + "1\n" * 10_001 + "1.5\n")
    assert read_tables([path], delimiter=",")["a"].dtype == pl.Float64


def test_dates_are_dates(tmp_path):
    path = write(tmp_path / "t.csv", "d,e\n2020-01-31,1\n")
    assert read_tables([path]).schema["d"] == pl.Date


def test_a_pattern_reads_all_files_and_names_the_rows_by_them(tmp_path):
    write(tmp_path / "north.csv", "a,b\n1,2\n")
    write(tmp_path / "south.csv", "b,a\n4.5,3\n")
    read = read_tables([f"{tmp_path}/*.csv"], with_filename=True)
    assert read.rows() == [(1, 2.0, "north"), (3, 4.5, "south")]


def test_a_column_named_filename_comes_first(tmp_path):
    path = write(tmp_path / "t.csv", "a,filename\n1,mine\n")
    assert read_tables([path], with_filename=True)["filename"].to_list() == ["mine"]


def test_files_of_one_name_in_two_folders_stay_apart(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "t.csv", "a,b\n1,2\n")
    assert read_tables([f"{tmp_path}/*/t.csv"], with_filename=True)["filename"].n_unique() == 2


def test_a_column_empty_in_one_file_takes_the_type_of_the_others(tmp_path):
    write(tmp_path / "1.csv", "a,b\n1,\n")
    write(tmp_path / "2.csv", "a,b\n1,2.5\n")
    assert read_tables([f"{tmp_path}/*.csv"])["b"].to_list() == [None, 2.5]


def test_a_missing_file_or_a_pattern_without_files(tmp_path):
    assert "There is no file" in complaint(tmp_path / "t.csv")
    assert "There is no file that matches" in complaint(tmp_path / "*.csv")


def test_a_folder_or_an_unknown_format(tmp_path):
    assert "is a folder: name its files" in complaint(tmp_path)
    write(tmp_path / "t.docx", "hello")
    assert "it must end in .csv" in complaint(tmp_path / "t.docx")


@pytest.mark.parametrize("text", ["a,b\n1,\xe9\n", "\xe9,b\n1,2\n", "a,b\n" + "1,2\n" * 30_000 + "1,\xe9\n"])
def test_another_encoding_is_named_and_can_be_given(tmp_path, text):
    path = write(tmp_path / "t.csv", text, "latin-1")
    assert "is not encoded in UTF-8: pass --encoding" in complaint(path)
    assert "\xe9" in str(read_tables([path], encoding="latin-1").tail(1).to_dicts())


def test_utf_16_and_encodings_that_do_not_exist(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1,2\n", "utf-16")
    assert "pass --encoding utf-16" in complaint(path)
    assert read_tables([path], encoding="utf-16").rows() == [(1, 2)]
    assert "'latin' is not known" in complaint(path, encoding="latin_x").replace("latin_x", "latin")


@pytest.mark.parametrize(("other", "output"), [(";", "';'"), ("\t", "'\\t'"), ("|", "'|'")])
def test_another_delimiter_is_seen_and_can_be_given(tmp_path, capsys, other, output):
    path = write(tmp_path / "t.csv", f"a{other}b\n1{other}2\n")
    assert read_tables([path]).rows() == [(1, 2)]
    assert f"are separated by {output}; if not, pass --delimiter" in capsys.readouterr().err
    assert read_tables([path], delimiter=output.strip("'")).rows() == [(1, 2)]
    assert capsys.readouterr().err == ""
    assert complaint(path, delimiter=",").endswith(f"pass --delimiter {output}.")


def test_a_delimiter_of_several_characters(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1,2\n")
    assert "A delimiter is one character" in complaint(path, delimiter="::")


def test_a_line_with_more_fields_than_names(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1,2,3\n")
    assert "has more fields than the first line" in complaint(path)


@pytest.mark.parametrize("text", ["", "\n", "a,b\n"])
def test_an_empty_table(tmp_path, text):
    assert "is empty" in complaint(write(tmp_path / "t.csv", text)) or text == "a,b\n"
    if text == "a,b\n":
        assert "has no rows" in complaint(tmp_path / "t.csv")


def test_empty_files_among_others_are_no_fault_but_all_empty_are(tmp_path):
    write(tmp_path / "1.csv", "a,b\n")
    write(tmp_path / "2.csv", "a,b\n")
    assert "None of the 2 files has a row" in complaint(tmp_path / "*.csv")
    write(tmp_path / "2.csv", "a,b\n1,2\n")
    assert read_tables([f"{tmp_path}/*.csv"]).rows() == [(1, 2)]


def test_two_columns_of_one_name(tmp_path):
    assert "are named 'a'" in complaint(write(tmp_path / "t.csv", "a,a\n1,2\n"))


@pytest.mark.parametrize(("name", "kind"), [("t.parquet", "Parquet"), ("t.arrow", "Arrow")])
def test_a_damaged_binary_file(tmp_path, name, kind):
    assert f"cannot be read as {kind}" in complaint(write(tmp_path / name, "hello"))


def test_a_damaged_gzip(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n" * 100)[:-20])
    assert "is not a whole gzip file" in complaint(path)
    path.write_bytes(b"a,b\n1,2\n")
    assert "is not a whole gzip file" in complaint(path)


def test_files_whose_columns_or_types_differ(tmp_path):
    write(tmp_path / "1.csv", "a,b\n1,2\n")
    write(tmp_path / "2.csv", "a,c\n1,2\n")
    assert "lacks the column 'b'" in complaint(tmp_path / "*.csv")
    write(tmp_path / "2.csv", "a,b\n1,x\n")
    text = complaint(tmp_path / "*.csv")
    assert "The column 'b' is text in" in text
    assert "give it one type" in text


def test_the_stem_is_without_the_whole_suffix(tmp_path):
    assert stem_of(tmp_path / "north.csv.gz") == "north"
    assert stem_of(tmp_path / "a.b.parquet") == "a.b"


@pytest.mark.parametrize(
    "encoding", ["base64", "rot13", "zlib", "hex", "undefined", "punycode", "", "a b", "x" * 500]
)
def test_what_is_no_encoding_of_this_text_is_refused(tmp_path, encoding):
    path = write(tmp_path / "t.csv", "a,b\n1.5,-2\n")
    assert "encod" in complaint(path, encoding=encoding)


def test_a_file_without_the_mark_of_its_encoding_is_refused(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1.5,-2\n")
    assert "is not encoded in utf-16" in complaint(path, encoding="utf-16")


@pytest.mark.parametrize("delimiter", ['"', "\n", "\r", "", "ab", "é", "\udc80"])
def test_what_cannot_separate_fields_is_refused(tmp_path, delimiter):
    assert "A delimiter is one character" in complaint(
        write(tmp_path / "t.csv", "a,b\n1,2\n"), delimiter=delimiter
    )


@pytest.mark.parametrize("kind", ["gzip", "text", "parquet", "arrow"])
def test_what_does_not_fit_into_the_memory_is_refused(tmp_path, monkeypatch, kind):
    # A gzip bomb was unpacked until the system ended the process.
    rows = pl.DataFrame({"a": [1] * 10**6, "b": [2] * 10**6})
    path = tmp_path / {"gzip": "t.csv.gz", "text": "t.csv", "parquet": "t.parquet", "arrow": "t.arrow"}[kind]
    if kind == "gzip":
        path.write_bytes(gzip.compress(rows.write_csv().encode(), mtime=0))
        assert path.stat().st_size < 20_000
    else:
        {"text": rows.write_csv, "parquet": rows.write_parquet, "arrow": rows.write_ipc}[kind](path)
    monkeypatch.setattr("coterie.cli.formats.free_memory", lambda: 2**23)
    assert "all that fits into the free memory" in complaint(path)
    monkeypatch.undo()
    assert read_tables([str(path)]).height == 10**6


def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    for name in ("pipe.csv", "zero.csv"):
        assert "is no plain file" in complaint(tmp_path / name)


GERMAN = "id;price;area;ratio;day\n007;1.234,5;1.000;0.5;31.12.2024\n08;950,25;80;1.5;01.01.2025\n"


def test_decimal_commas_are_seen_and_points_then_part_thousands(tmp_path, capsys):
    table = read_tables([write(tmp_path / "t.csv", GERMAN)])
    assert table["price"].to_list() == [1234.5, 950.25]
    assert table["area"].to_list() == [1000.0, 80.0]
    assert table["ratio"].to_list() == [0.5, 1.5]
    assert "numbers such as '1.234,5' have decimal commas; if not, pass" in capsys.readouterr().err
    table = read_tables([write(tmp_path / "t.csv", GERMAN)], decimal=".")
    assert table["price"].to_list() == ["1.234,5", "950,25"]
    assert "a comma or a point" in complaint(tmp_path / "t.csv", decimal="x")


def test_a_comma_that_may_part_thousands_stays_text_unless_it_is_said_to_be_decimal(tmp_path):
    path = write(tmp_path / "t.csv", "a;b\n1,234;x\n5,678;y\n")
    assert read_tables([path], delimiter=";")["a"].to_list() == ["1,234", "5,678"]
    assert read_tables([path], delimiter=";", decimal=",")["a"].to_list() == [1.234, 5.678]


def test_ids_keep_their_leading_zeros(tmp_path):
    path = write(tmp_path / "t.csv", GERMAN)
    assert read_tables([path], ids=["id"])["id"].to_list() == ["007", "08"]
    plain = write(tmp_path / "p.csv", "id,x\n7,1\n10,2\n")
    assert read_tables([plain], ids=["id", "none"])["id"].to_list() == [7, 10]


SHEET = [["a", "b", "c"], [1, "x", 1.5], [2, "NA", None]]


def test_a_workbook_is_read_like_text(tmp_path, capsys):
    pytest.importorskip("fastexcel")
    path = write_workbook(tmp_path / "t.xlsx", first=SHEET, second=SHEET)
    table = read_tables([str(path)])
    assert table.rows() == TABLE.rows()
    assert table["a"].dtype == pl.Int64
    assert "has 2 sheets; 'first' was read" in capsys.readouterr().err
    write_workbook(tmp_path / "t.xlsx", first=[["a", "a"], [1, 2]])
    assert "are named 'a': rename one of them" in complaint(path)
    write_workbook(tmp_path / "t.xlsx", first=[])
    assert "is empty" in complaint(path)
    write(path, "no workbook")
    assert "cannot be read as Excel" in complaint(path)


@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes")
@pytest.mark.parametrize(("last", "free"), [("XFD1048576", None), ("ZZ200000", 2**29)])
def test_cells_far_apart_do_not_end_the_process(last, free, tmp_path, monkeypatch):
    pytest.importorskip("fastexcel")
    cells = f'<c r="A1"><v>1</v></c><c r="{last}"><v>1</v></c>'
    path = write_workbook(tmp_path / "t.xlsx", first=[], cells=cells)
    assert path.stat().st_size < 2000
    if free is not None:
        monkeypatch.setattr("coterie.cli.formats.free_memory", lambda: free)
    assert "its cells reach so far that they would take more than" in complaint(path)


def test_a_workbook_names_the_extra_that_reads_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    path = write_workbook(tmp_path / "t.xlsx", first=SHEET)
    assert "Excel files need fastexcel: install coterie's extra 'excel'" in complaint(path)


@pytest.mark.parametrize("encoding", ["iso2022_jp", "hz", "utf-7", "unicode_escape"])
def test_agreed_columns_have_no_encoding_in_which_entries_change_others(tmp_path, encoding):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n")
    assert "one entry decides how later ones are read" in complaint(path, encoding=encoding, agreed=True)
