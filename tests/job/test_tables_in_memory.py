"""Tables that ``run_job`` takes in memory in place of files: the results of the files, or one error."""

import pandas as pd
import pytest

from kepler_traverse import graph_from_edges
from kepler_traverse.errors import InputError
from kepler_traverse.pipelines import run_job
from pipelines import verify
from tests.support.jobs import manifest_of

EDGES = {"src": [30, 10, 20], "dst": [10, 20, 40], "weight": [1, 2, 4]}
JOBS = pd.DataFrame({"vertex": [40, 10, 20, 30], "jobs": [20, 1, 100, 7]})
SUMS = {"result": "opportunities", "values": ["jobs"], "cutoffs": [1]}


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "e.csv"
    pd.DataFrame(EDGES).to_csv(path, index=False)
    return path


def answers(edges, folder, **options):
    options |= {"all_sources": True, "report": False, "device": "cpu"}
    if "columns" in options:
        options["algorithm"] = "sssp"
    return run_job(edges, output=folder, **options).to_pandas().to_dict("list")


@pytest.mark.parametrize("kind", ["files", "a table", "a graph"])
def test_a_table_of_vertices_has_its_values_by_label(edges, tmp_path, kind):
    given = {"files": edges, "a table": EDGES, "a graph": graph_from_edges(EDGES)}[kind]
    JOBS.to_parquet(tmp_path / "v.parquet")
    right = answers(given, tmp_path / "o", vertices=str(tmp_path / "v.parquet"), **SUMS)
    assert right["jobs"] == [101, 120, 8, 20]
    for place, table in enumerate((JOBS, JOBS.set_index("vertex"), JOBS.set_index("vertex")[::-1])):
        assert answers(given, tmp_path / str(place), vertices=table, **SUMS) == right


def test_vertices_of_a_table_are_added_by_a_column_and_not_by_an_index_without_a_name(
    edges, tmp_path
):
    more = pd.DataFrame({"jobs": [20, 1, 100, 7, 5]}, [40, 10, 20, 30, 50])
    with pytest.raises(InputError, match=r"the label 50 of its index is no vertex.*rename_axis"):
        answers(edges, tmp_path / "o", vertices=more, **SUMS)
    assert not (tmp_path / "o").exists()
    named = more.rename_axis("vertex").reset_index()
    assert answers(edges, tmp_path / "o", vertices=named, **SUMS)["jobs"] == [101, 120, 8, 20, 5]


@pytest.mark.parametrize(
    "given",
    [
        [(30, 10)],
        ([30], [10]),
        {"src": [30], "dst": [10]},
        pd.DataFrame({"v": [10], "u": [30]}),
        [0],
        {"edge": [0]},
    ],
)
def test_edges_that_paths_use_are_given_as_a_table(edges, tmp_path, given):
    pd.DataFrame({"src": [30], "dst": [10]}).to_csv(tmp_path / "t.csv", index=False)
    right = answers(edges, tmp_path / "o", result="flows", through=str(tmp_path / "t.csv"))
    assert answers(edges, tmp_path / "p", result="flows", through=given) == right


def test_wrong_edges_name_the_argument_and_write_nothing(edges, tmp_path):
    wrong = {"a": {"a": [1]}, "b": [(30, 99)], "c": [(30, 20)], "d": [7], "e": 5, "f": (0, 1)}
    for name, given in wrong.items():
        with pytest.raises(InputError, match="through"):
            answers(edges, tmp_path / name, result="flows", through=given)
        assert not (tmp_path / name).exists()


def test_ids_are_given_as_files_and_lists_for_edges_in_files_and_in_memory(edges, tmp_path):
    (tmp_path / "c.txt").write_text("10\n")
    own = {"columns": {"weight": "weight"}}
    forms = [
        answers(each, tmp_path / f"{i}{j}", closed=given, **own)
        for i, each in enumerate((edges, EDGES))
        for j, given in enumerate((str(tmp_path / "c.txt"), [10]))
    ]
    assert forms[1:] == forms[:1] * 3


def test_an_output_of_tables_in_memory_is_verified_with_files(edges, tmp_path, capsys):
    folder = tmp_path / "o"
    answers(edges, folder, result="flows", through=[(30, 10)], vertices=[99])
    assert manifest_of(folder)["settings"]["vertices"] == "(vertices in memory)"
    (tmp_path / "t.csv").write_text("src,dst\n30,10\n")
    (tmp_path / "v.txt").write_text("99\n")
    words = [str(folder), str(edges), "--through", str(tmp_path / "t.csv")]
    assert verify.main(words) == 2
    assert "give that by --vertices FILE" in capsys.readouterr().err
    assert verify.main([*words, "--vertices", str(tmp_path / "v.txt")]) == 0
