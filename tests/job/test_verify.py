"""A correct output is verified from its files alone. Every fault of an output is named, and the exit code is 5."""

import hashlib
import json
import shutil
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import plan_bfs, plan_sssp, read_graph
from kepler_traverse.search.results import checksum
from pipelines import batch_sources, verify
from pipelines.cli.options import read_options
from pipelines.cli.settings import read_settings
from pipelines.output.layout import Layout
from pipelines.output.manifest_types import FORMAT
from pipelines.output.part_file import FOOTER_KEY, Answer, checked_part, part_name, write_part
from pipelines.output.run_folder import MANIFEST, SUCCESS, compute_digest, compute_fingerprint
from pipelines.output.store import Store
from pipelines.verification import part_checks
from tests.support.plans import table_of

RNG = np.random.default_rng(5)
ENDS = RNG.integers(0, 40, (160, 2))
WEIGHTS = RNG.integers(0, 9, 160)
EDGES = {
    "hops": {"src": ENDS[:, 0] * 3, "dst": ENDS[:, 1] * 3},
    "weights": {"src": ENDS[:, 0], "dst": ENDS[:, 1], "weight": WEIGHTS},
    "names": {
        "src": [f"v{u}" for u in ENDS[:, 0]],
        "dst": [f"v{v}" for v in ENDS[:, 1]],
        "weight": np.where(ENDS[:, 0] == ENDS[:, 1], 1, WEIGHTS + ENDS[:, 0] - ENDS[:, 1]).astype(
            np.float64
        ),
    },
}


def digest(ids):
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


def seal(folder, manifest):
    """Write a manifest that agrees with its parts, and the mark for it."""
    manifest["fingerprint"] = compute_fingerprint(manifest["identity"])
    manifest["digest"] = compute_digest(manifest["graph"]["fingerprint"], manifest["parts"])
    (folder / MANIFEST).write_text(json.dumps(manifest))
    (folder / SUCCESS).write_text(
        hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest() + "\n"
    )


class Output:
    """A finished output as the job writes it, without a cluster."""

    def __init__(self, folder, name, algorithm="bfs", targets=None, n_sources=10, **flags):
        self.folder = folder / "out"
        self.edges = folder / f"{name}.parquet"
        self.folder.mkdir()
        pq.write_table(pa.table(EDGES[name]), self.edges)
        if targets is not None:
            flags["targets"] = str(folder / "targets.txt")
            (folder / "targets.txt").write_text("\n".join(map(str, targets)))
        settings = read_settings({
            "edges": [str(self.edges)], "output": str(self.folder), "algorithm": algorithm, "random_sources": n_sources,
            **flags,
        })  # fmt: skip
        graph = self.graph = read_graph(self.edges, device="cpu", **read_options(settings))
        self.sources = graph.ids_at(np.arange(n_sources)).tolist()
        limit = settings.max_depth if algorithm == "bfs" else settings.cutoff
        identity = {
            "graph": graph.fingerprint, "algorithm": algorithm, "limit": limit,
            "targets": None if targets is None else digest(targets), "result": settings.result,
            "certify": "all", "sources": digest(self.sources), "batch_size": 4,
        }  # fmt: skip
        limited = {"max_depth" if algorithm == "bfs" else "cutoff": limit}
        self.plan = (plan_bfs if algorithm == "bfs" else plan_sssp)(
            graph, **limited, targets=targets
        )
        self.manifest = {
            "format": FORMAT, "status": "done", "algorithm": algorithm, "result": settings.result, "means": "rows",
            "settings": asdict(settings), "identity": identity,
            "graph": {
                "fingerprint": graph.fingerprint, "vertices": graph.n_vertices, "stored_edges": graph.n_edges,
                "directed": graph.directed,
            },
            "device": "cpu", "strategy": "auto", "workers": 1, "memory": {}, "versions": {}, "seconds": {},
            "sources": n_sources, "duplicate_sources": 0, "batches": -(-n_sources // 4),
            "parts": [], "tables": [], "failed": [], "retried": [],
        }  # fmt: skip
        self.run = compute_fingerprint(identity)
        for number in range(self.manifest["batches"]):
            self.manifest["parts"].append(self.write(number))
        seal(self.folder, self.manifest)

    def traversals(self, number):
        for source in self.sources[4 * number : 4 * number + 4]:
            result = self.plan(source).copy()
            yield (
                source,
                result
                if self.manifest["identity"]["result"] == "predecessors"
                else replace(result, predecessor=None),
            )

    def write(
        self, number, change=lambda result: result, change_rows=lambda table: table, run=None
    ):
        """Write a part file, changed or not, with consistent checksums, footer and hash."""
        answers = []
        for source, result in self.traversals(number):
            result = change(result)
            table = change_rows(table_of(self.graph, result, self.plan.query))
            answers.append(
                Answer.of_one(
                    source,
                    table,
                    checksum(
                        result.cut(self.plan.query.limit, self.plan.query.targets),
                        self.graph.returns_integers,
                    ),
                )
            )
        result = self.manifest["identity"]["result"]
        entry = write_part(Store(self.folder), number, Layout(result, run=run or self.run), answers)
        return entry | {"sources": [source for answer in answers for source in answer.sources]}

    def rewrite(self, number, **changes):
        """Replace a part file by a changed one, and adapt the manifest."""
        self.manifest["parts"][number] = self.write(number, **changes)
        seal(self.folder, self.manifest)


def check(folder, edges, *more):
    return verify.main([str(folder), str(edges), "--device", "cpu", *more])


def faults_of(output, capsys):
    """The faults of an output as (kind, file, message); the exit code must fit."""
    capsys.readouterr()
    code = check(output.folder, output.edges, "--json")
    found = json.loads(capsys.readouterr().out)
    assert code == (5 if found["faults"] else 0)
    assert found["valid"] == (not found["faults"])
    return [(fault["kind"], fault["file"], fault["message"]) for fault in found["faults"]]


RIGHT = {
    "hops": ("hops", {}),
    "hops with predecessors": ("hops", {"result": "predecessors"}),
    "hops of an undirected graph, to a limit": ("hops", {"directed": False, "max_depth": 2}),
    "weighted": ("weights", {"algorithm": "sssp"}),
    "weighted with predecessors, to a limit": (
        "weights",
        {"algorithm": "sssp", "cutoff": 5.0, "result": "predecessors"},
    ),
    "weighted, to a limit": ("weights", {"algorithm": "sssp", "cutoff": 5.0}),
    "to targets": (
        "weights",
        {"algorithm": "sssp", "targets": [3, 7, 39], "result": "predecessors"},
    ),
    "hops to targets, to a limit": ("hops", {"targets": [9, 21], "max_depth": 3}),
    "names and negative weights": ("names", {"algorithm": "sssp", "result": "predecessors"}),
    "negative weights, to a limit": ("names", {"algorithm": "sssp", "cutoff": 2.0}),
}
WAYS = {
    "hops": "certified without predecessors",
    "hops of an undirected graph, to a limit": "certified without predecessors",
    "weighted": "certified without predecessors", "weighted, to a limit": "certified without predecessors",
    "to targets": "traversed again", "hops to targets, to a limit": "traversed again",
    "negative weights, to a limit": "traversed again",
}  # fmt: skip


@pytest.mark.parametrize("what", RIGHT)
def test_a_right_output_is_proven_right_and_a_wrong_distance_in_it_is_found(
    tmp_path, capsys, monkeypatch, what
):
    monkeypatch.setattr(part_checks, "BATCH_BYTES", 500)  # a few sources at a time
    name, options = RIGHT[what]
    output = Output(tmp_path, name, **options)
    assert check(output.folder, output.edges, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["proven"] == {WAYS.get(what, "certified"): 10}
    assert found["rows"] == pq.read_table(output.folder).num_rows

    def too_far(result):
        last = np.flatnonzero(
            result.cut(output.plan.query.limit, output.plan.query.targets).reached
        )[-1]
        whole = result.algorithm == "bfs" or output.graph.integer_weights
        result.distance[last] += 0 if result.source == last else -1 if whole else 0.5
        return result

    output.rewrite(1, change=too_far)
    kinds = {kind for kind, file, _ in faults_of(output, capsys) if file == "part-000001.parquet"}
    assert kinds == {"wrong result"}


@pytest.fixture
def output(tmp_path):
    return Output(tmp_path, "weights", algorithm="sssp")


def test_every_flipped_bit_of_a_part_is_found(output, capsys):
    path = output.folder / part_name(1)
    whole = path.read_bytes()
    for at in np.linspace(0, len(whole) - 1, 12).astype(int):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(at) % 8
        path.write_bytes(bytes(damaged))
        found = faults_of(output, capsys)
        assert found
        assert {file for _, file, _ in found} == {"part-000001.parquet"}


def test_every_flipped_bit_of_manifest_and_mark_is_found(output, capsys):
    for name in (MANIFEST, SUCCESS):
        path = output.folder / name
        whole = path.read_bytes()
        for at in np.linspace(0, len(whole) - 2, 8).astype(int):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << int(at) % 7
            path.write_bytes(bytes(damaged))
            assert check(output.folder, output.edges) in (2, 5)
            capsys.readouterr()
        path.write_bytes(whole)


def changed_rows(change):
    """Change the rows of each source that has more than three."""
    return lambda table: change(table) if table.num_rows > 3 else table


ROW_FAULTS = {
    "lost": (lambda rows: pa.concat_tables([rows[:2], rows[3:]]), {"checksum", "wrong result"}, "C3"),
    "doubled": (lambda rows: pa.concat_tables([rows[:2], rows[1:]]), {"rows"}, "is there twice"),
    "out of order": (lambda rows: pa.concat_tables([rows[2:3], rows[:2], rows[3:]]), {"rows"}, "out of order"),
    "all lost": (lambda rows: rows[:0], {"rows"}, "has no rows"),
    "of an unknown vertex": (
        lambda rows: rows.set_column(1, "vertex", pa.array([999] * rows.num_rows, rows["vertex"].type)), {"damaged part"},
        "999"),
}  # fmt: skip


@pytest.mark.parametrize("what", ROW_FAULTS)
def test_rows_that_are_wrong_in_a_part_that_agrees_with_its_manifest_are_found(
    tmp_path, capsys, what
):
    output = Output(
        tmp_path,
        "weights",
        algorithm="sssp",
        result="predecessors" if what in ("lost", "doubled") else "distances",
    )
    change, kinds, says = ROW_FAULTS[what]
    output.rewrite(0, change_rows=changed_rows(change))
    found = faults_of(output, capsys)
    assert kinds <= {kind for kind, _, _ in found}
    assert any(says in message for _, _, message in found)
    assert {file for _, file, _ in found} == {"part-000000.parquet"}


def test_swapped_sources_are_found_although_all_hashes_agree(output, capsys):
    def swapped(result):
        first, second = (output.graph.to_numbers(output.sources[:2])).tolist()
        return replace(
            result, source={first: second, second: first}.get(result.source, result.source)
        )

    output.rewrite(0, change=swapped)
    assert any(kind == "order" for kind, _, _ in faults_of(output, capsys))
    # In the right order, but each source with the rows of the other.
    good = output.sources[:2]
    output.sources[:2] = good[::-1]
    entry = output.write(0, change=swapped)
    output.sources[:2] = good
    rename_sources(output.folder / part_name(0), good + output.sources[2:4])
    entry |= facts(output.folder / part_name(0)) | {"sources": output.sources[:4]}
    output.manifest["parts"][0] = entry
    seal(output.folder, output.manifest)
    found = faults_of(output, capsys)
    assert sum(kind == "wrong result" for kind, _, _ in found) == 2


def facts(path):
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}


def rename_sources(path, sources):
    """Replace the sources in the footer of a part file, with its rows unchanged."""
    with pq.ParquetFile(path) as file:
        footer = json.loads(file.metadata.metadata[FOOTER_KEY]) | {"sources": sources}
        groups = [file.read_row_group(i) for i in range(file.num_row_groups)]
    with pq.ParquetWriter(path, groups[0].schema, write_page_checksum=True) as writer:
        for group in groups:
            writer.write_table(group)
        writer.add_key_value_metadata({FOOTER_KEY: json.dumps(footer)})


def test_a_wrong_predecessor_is_found(tmp_path, capsys):
    output = Output(tmp_path, "weights", algorithm="sssp", result="predecessors")

    def led_astray(result):
        reached = np.flatnonzero(
            result.reached & (np.arange(result.distance.size) != result.source)
        )
        result.predecessor[reached[0]] = reached[-1]
        return result

    output.rewrite(2, change=led_astray)
    assert {kind for kind, _, _ in faults_of(output, capsys)} == {"wrong result"}


def test_a_part_that_no_manifest_lists_is_not_kept_if_a_predecessor_is_damaged(tmp_path):
    output = Output(tmp_path, "weights", algorithm="sssp", result="predecessors")
    path = output.folder / "part-000000.parquet"
    known = (
        output.folder,
        0,
        Layout("predecessors", run=output.run),
        output.sources[:4],
        output.graph,
        None,
    )
    assert checked_part(*known)["rows"] == pq.read_metadata(path).num_rows
    pages = pq.read_metadata(path).row_group(0).column(3)
    assert pages.path_in_schema == "predecessor"
    data = bytearray(path.read_bytes())
    data[
        (pages.dictionary_page_offset or pages.data_page_offset) + pages.total_compressed_size - 1
    ] ^= 1
    path.write_bytes(data)
    assert checked_part(*known) is None


def test_a_part_of_another_run_is_found(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    output = Output(tmp_path / "a", "weights", algorithm="sssp")
    other = Output(tmp_path / "b", "weights", algorithm="sssp", cutoff=6.0)
    shutil.copy(other.folder / part_name(1), output.folder)
    assert {"changed part", "another run"} <= {kind for kind, _, _ in faults_of(output, capsys)}
    output.manifest["parts"][1] = other.manifest["parts"][1]
    seal(output.folder, output.manifest)
    assert "another run" in {kind for kind, _, _ in faults_of(output, capsys)}


def test_parts_in_each_others_place_are_found(output, capsys):
    first, second = (output.folder / part_name(i) for i in (0, 1))
    bytes_of_first = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(bytes_of_first)
    parts = output.manifest["parts"]
    parts[0], parts[1] = parts[1] | {"file": first.name}, parts[0] | {"file": second.name}
    seal(output.folder, output.manifest)
    kinds = [kind for kind, _, _ in faults_of(output, capsys)]
    assert {"sources", "another run"} <= set(kinds)


def test_missing_and_extra_parts_are_found(output, capsys):
    shutil.copy(output.folder / part_name(0), output.folder / part_name(7))
    (output.folder / part_name(2)).unlink()
    found = faults_of(output, capsys)
    assert ("missing part", "part-000002.parquet", "the file does not exist") in found
    assert any(kind == "extra part" and file == "part-000007.parquet" for kind, file, _ in found)


MANIFEST_FAULTS = {
    "a part less": lambda m: m["parts"].pop(),
    "a part twice": lambda m: m["parts"].append(m["parts"][0]),
    "a source less": lambda m: m["parts"][0]["sources"].pop(),
    "another number of sources": lambda m: m.update(sources=11),
    "another number of batches": lambda m: m.update(batches=4),
    "another algorithm": lambda m: m.update(algorithm="sssp"),
    "another checksum": lambda m: m["parts"][1].update(checksum="0" * 16),
    "other rows": lambda m: m["parts"][1].update(rows=3),
    "another size": lambda m: m["parts"][1].update(bytes=3),
    "another batch size": lambda m: m["identity"].update(batch_size=5),
    "another graph": lambda m: m["graph"].update(fingerprint="0" * 64),
}
MALFORMED = {
    "no parts": lambda m: m.pop("parts"),
    "parts that are none": lambda m: m.update(parts=[1, 2]),
    "no settings": lambda m: m.update(settings={"edges": []}),
}


def with_manifest(folder, change) -> Output:
    output = Output(folder, "hops")
    change(output.manifest)
    (output.folder / MANIFEST).write_text(json.dumps(output.manifest))
    text = (output.folder / MANIFEST).read_bytes()
    (output.folder / SUCCESS).write_text(hashlib.sha256(text).hexdigest())
    return output


@pytest.mark.parametrize("what", MANIFEST_FAULTS)
def test_a_manifest_that_disagrees_with_the_parts_is_found(tmp_path, capsys, what):
    assert faults_of(with_manifest(tmp_path, MANIFEST_FAULTS[what]), capsys)


@pytest.mark.parametrize("what", MALFORMED)
def test_verify_refuses_a_manifest_that_breaks_its_schema(tmp_path, capsys, what):
    output = with_manifest(tmp_path, MALFORMED[what])
    assert check(output.folder, output.edges) == 2
    err = capsys.readouterr().err
    assert MANIFEST in err
    assert len(err.splitlines()) == 1


def test_a_run_that_is_not_complete_is_no_right_output(output, capsys):
    (output.folder / SUCCESS).unlink()
    assert [kind for kind, _, _ in faults_of(output, capsys)] == ["incomplete"]


def test_columns_of_another_kind_are_found(output, capsys):
    output.rewrite(
        0,
        change_rows=lambda table: table.set_column(
            2, "distance", table["distance"].cast(pa.float64())
        ),
    )
    output.rewrite(1, change_rows=lambda table: table.append_column("more", table["distance"]))
    found = faults_of(output, capsys)
    assert [(kind, file) for kind, file, _ in found] == [
        ("columns", part_name(0)),
        ("columns", part_name(1)),
    ]


def test_a_schema_that_says_another_meaning_is_found(output, capsys):
    path = output.folder / "part-000000.parquet"
    with pq.ParquetFile(path) as file:
        table = file.read()
        footer = {FOOTER_KEY: file.metadata.metadata[FOOTER_KEY]}
    with pq.ParquetWriter(
        path, table.schema.with_metadata({b"kepler_traverse.means": b"miles"})
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(footer)
    output.manifest["parts"][0] |= {
        "bytes": path.stat().st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    seal(output.folder, output.manifest)
    (fault,) = faults_of(output, capsys)
    assert fault[:2] == ("columns", path.name)
    assert "its schema has kepler_traverse.result" in fault[2]


def test_a_row_group_beyond_what_the_job_writes_is_not_read(output, capsys, monkeypatch):
    monkeypatch.setattr(part_checks, "ROWS_PER_GROUP", -20)
    assert any(
        "more than this job writes" in message for _, _, message in faults_of(output, capsys)
    )


def test_faults_are_all_counted_but_listed_up_to_a_limit(output, capsys, monkeypatch):
    monkeypatch.setattr(part_checks, "MAX_FAULTS", 2)
    for number in range(3):
        output.rewrite(
            number, change_rows=changed_rows(lambda rows: pa.concat_tables([rows[:2], rows[1:]]))
        )
    assert check(output.folder, output.edges) == 5
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 4
    assert printed[2].startswith("and ")
    assert "WRONG" in printed[3]


def test_missing_output_or_other_edge_list_is_bad_input(tmp_path, capsys):
    output = Output(tmp_path, "hops", targets=[9, 21])
    pq.write_table(pa.table({"src": [1, 2], "dst": [2, 3]}), tmp_path / "other.parquet")
    (tmp_path / "empty").mkdir()
    for words, says in [
        ([tmp_path / "nowhere", output.edges], "no such folder"),
        ([tmp_path / "empty", output.edges], "no output of this job"),
        ([output.folder, tmp_path / "nowhere.parquet"], "no such file"),
        ([output.folder, tmp_path / "other.parquet"], "not the edge list of the run"),
        ([output.folder, output.edges, "--targets", tmp_path / "gone.txt"], "--targets"),
        (
            [output.folder, output.edges, "--targets", tmp_path / "others.txt"],
            "not the targets of the run",
        ),
        ([output.folder], "required"),
        ([output.folder, output.edges, "--speed", "9"], "unknown option --speed"),
    ]:
        (tmp_path / "others.txt").write_text("9\n")
        assert verify.main([str(word) for word in words]) == 2
        assert says in capsys.readouterr().err
    assert verify.main(["--help"]) == 0
    assert "5 faults were" in capsys.readouterr().out


def test_output_of_the_job_is_verified(tmp_path, capsys):
    pq.write_table(pa.table(EDGES["weights"]), tmp_path / "edges.parquet")
    words = [tmp_path / "edges.parquet", "--algorithm", "sssp", "--undirected", "--random-sources", 9, "--device", "cpu",
             "--workers", 1, "--batch-size", 4, "--output", tmp_path / "out", "--json"]  # fmt: skip
    assert batch_sources.main([str(word) for word in words]) == 0
    assert check(tmp_path / "out", tmp_path / "edges.parquet") == 0
    assert "methods: 9 certified without predecessors" in capsys.readouterr().out
