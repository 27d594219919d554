"""Networks of biologists: SIF files of Cytoscape, and tables of STRING."""

import bz2
import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import EdgeListError, InputError, read_graph
from kepler_traverse.convert import to_arrow
from kepler_traverse.formats import text


def read(path, **options):
    return read_graph(path, device="cpu", **options)


def edges_of(graph):
    table = to_arrow(graph)
    return sorted(zip(table["src"].to_pylist(), table["dst"].to_pylist(), strict=True))


NAMES = st.sampled_from(["TP53", "MDM2", "a", "#1", "é", '"q"', "x,y", "9606.ENSP1"])
LINES = st.lists(
    st.tuples(NAMES, st.sampled_from(["pp", "pd", "-"]), st.lists(NAMES, max_size=4)), min_size=1
)


@settings(max_examples=40, deadline=None)
@given(
    LINES,
    st.sampled_from(["\t", " ", "  "]),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.booleans(),
    st.sampled_from([64, 1 << 18]),
)
def test_a_line_is_an_edge_to_each_target_or_a_vertex(
    tmp_path_factory, lines, sign, end, has_last, block
):
    rows = [sign.join([a, kind, *targets] if targets else [a]) for a, kind, targets in lines]
    path = tmp_path_factory.mktemp("sif") / "network.sif"
    path.write_bytes((end.join(rows) + (end if has_last else "")).encode())
    before = text.BLOCK_BYTES
    text.BLOCK_BYTES = block
    try:
        graph = read(path)
    finally:
        text.BLOCK_BYTES = before
    edges = {(a, b) for a, _, targets in lines for b in targets if a != b}
    assert edges_of(graph) == sorted(edges)
    assert graph.ids.to_pylist() == sorted(
        {name for a, _, targets in lines for name in (a, *targets)}, key=str.encode
    )


def test_names_with_blanks_stand_between_tabs_and_a_filter_reads_the_interaction(tmp_path):
    path = tmp_path / "network.sif.gz"
    path.write_bytes(gzip.compress(b"node one\tpp\tnode two\nnode two\tpd\tnode three\ta\n"))
    assert edges_of(read(path)) == [
        ("node one", "node two"), ("node two", "a"), ("node two", "node three")
    ]  # fmt: skip
    graph = read(path, where="interaction == 'pp'", directed=False)
    assert edges_of(graph) == [("node one", "node two")]


def test_several_files_and_integers_as_ids(tmp_path):
    (tmp_path / "a.sif").write_text("7157 pp 4193\n")
    (tmp_path / "b.sif.bz2").write_bytes(bz2.compress(b"4193 pp 1956 7157\n"))
    graph = read([tmp_path / "a.sif", tmp_path / "b.sif.bz2"], edge_ids=True)
    assert graph.ids.tolist() == [1956, 4193, 7157]
    assert graph.edge_rows.tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("A pp B\nA pp\n", "line 2 'A pp' is neither one name nor"),
        ("A\t\tB\n", "is neither one name nor"),
        ("A pp B\n" * 200 + "A\tpp\tB\n", "line 201 .* has a tab, and the first lines"),
        ("A\tpp\tB\nA pp C\n", "line 2 'A pp C' has no tab, and other lines have"),
        ("x" * 200_000 + " pp" + " y" * 200_000, "too many targets for so long a source"),
        ("", "empty"),
        ("\n\n", "no edges"),
    ],
)
def test_what_is_no_line_of_sif_is_refused(tmp_path, content, said):
    path = tmp_path / "network.sif"
    path.write_text(content)
    with pytest.raises(EdgeListError, match=said):
        read(path)


def test_options_of_other_texts_are_refused(tmp_path):
    path = tmp_path / "network.sif"
    path.write_text("A pp B\n")
    for options in ({"header": "yes"}, {"delimiter": ","}):
        with pytest.raises(InputError, match="not for format sif"):
            read(path, **options)
    with pytest.raises(EdgeListError, match="no weight column"):
        read(path, weighted=True)


LINKS = "protein1 protein2 combined_score\n9606.ENSP1 9606.ENSP2 490\n9606.ENSP2 9606.ENSP3 900\n"


def test_a_table_of_string_is_read_with_a_header_and_a_least_score(tmp_path):
    path = tmp_path / "9606.protein.links.v12.0.txt.gz"
    path.write_bytes(gzip.compress(LINKS.encode()))
    with pytest.raises(EdgeListError, match=r"looks like a header.*give header='yes'"):
        read(path)
    graph = read(path, header="yes")
    assert (graph.report.src_column, graph.report.dst_column) == ("protein1", "protein2")
    assert graph.weights is None  # a score is no length
    strong = read(path, header="yes", where="combined_score >= 700", directed=False)
    assert edges_of(strong) == [("9606.ENSP2", "9606.ENSP3")]
