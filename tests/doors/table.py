"""The table of doors: every argument of each public function, and every option of the job, with what it takes.

An argument that takes ids, numbers, tables or files of the user's has a kind behind a colon, which ``DOORS`` cross with
containers. All others have none: graphs, results, names, switches and choices.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import kepler_traverse as kt
from kepler_traverse import csgraph
from kepler_traverse.assignment import BPR, assign
from kepler_traverse.pandana import Network
from kepler_traverse.planning import read_omx, write_omx, write_ubodt
from tests.doors import containers
from tests.doors.containers import Form

FUNCTIONS = {
    "graph_from_edges": "edges:edges src:ends dst:ends weight:per_row reverse_weight:per_row directed vertices:ids "
    "weighted weight_type where oneway:per_row only_vertices:ids closed:ids largest_component edge_ids",
    "read_graph": "paths:edges directed device src_column dst_column weight_column "
    "reverse_weight_column weighted format header delimiter id_type weight_type vertices:ids where "
    "oneway_column only_vertices:ids closed:ids largest_component edge_ids scratch build_memory",
    "with_weights": "graph weight:per_row reverse_weight:per_row per weight_type",
    "integer_weights": "graph unit",
    "save_graph": "graph folder",
    "load_graph": "folder device verify",
    "Graph.hierarchy": "metric",
    "Graph.labels": "metric",
    "hub_labels.HubLabels.between": "sources:positions targets:positions",
    "Graph.to": "device edges",
    "Graph.to_numbers": "ids:ids role",
    "Graph.ids_at": "numbers:positions",
    "convert.from_networkx": "graph weight",
    "convert.from_igraph": "graph weight ids",
    "convert.from_cugraph": "graph",
    "convert.from_osm": "path mode weight",
    "convert.to_arrow": "graph",
    "convert.to_networkx": "graph weight",
    "convert.to_scipy": "graph",
    "datasets.town": "seed",
    "bfs": "graph source:id strategy predecessors max_depth:number targets:ids knobs unreached",
    "sssp": "graph source:id strategy predecessors cutoff:number targets:ids knobs unreached",
    "bfs_many": "graph sources:ids result strategy max_depth:per_source targets:ids knobs unreached direction memory "
    "hierarchy progress stream cutoffs:numbers values:per_vertex decay k groups:per_source "
    "source_weights:per_source options",
    "sssp_many": "graph sources:ids result strategy cutoff:per_source targets:ids knobs unreached direction memory "
    "hierarchy progress stream cutoffs:numbers values:per_vertex decay k groups:per_source "
    "source_weights:per_source options",
    "bfs_pairs": "graph origins:pairs destinations:ends strategy max_depth:number knobs memory result direction options",
    "sssp_pairs": "graph origins:pairs destinations:ends strategy cutoff:number knobs memory result direction options",
    "paths": "frame targets:pairs graph edges along:along algorithm strategy memory",
    "components": "graph",
    "snap": "graph points:places vertices:places coordinates cutoff:number component around:id x y",
    "extremes.extremes": "graph algorithm want unconnected certified memory",
    "extremes.diameter": "graph algorithm unconnected certified memory",
    "extremes.radius": "graph algorithm unconnected certified memory",
    "extremes.center": "graph algorithm unconnected certified memory",
    "extremes.periphery": "graph algorithm unconnected certified memory",
    "extremes.top_closeness": "graph k algorithm direction certified memory with_count",
    "assignment.assign": "links:table trips:table cost classes closed:ids gap method max_iterations select_link checkpoint "
    "progress device src_column dst_column",
    "assignment.BPR.arrays": "table",
    "assignment.Conical.arrays": "table",
    "assignment.CostFunction.check": "scale n_rows",
    "assignment.CostFunction.values": "flow",
    "assignment.CostFunction.slopes": "flow value",
    "assignment.CostFunction.integrals": "flow",
    "assignment.VehicleClass.fixed_costs": "table",
    "assignment.Equilibrium.skims": "along zones:ids",
    "assignment.Equilibrium.skim_columns": "names zones",
    "planning.read_network": "path use",
    "planning.read_trips": "path",
    "planning.read_omx": "path matrices lookup",
    "planning.write_omx": "path table:table columns lookup",
    "planning.write_ubodt": "graph path cutoff sources:ids",
    "Traversal.cut": "limit targets",
    "Traversals.within": "limits",
    "Traversals.stats": "offsets limit has_sums",
    "certify": "graph result cutoff:number max_depth:number",
    "certify_many": "graph source_vertices:positions distances limit:per_row",
    "plan_bfs": "graph strategy predecessors max_depth:number targets:ids knobs",
    "plan_sssp": "graph strategy predecessors cutoff:number targets:ids knobs",
    "plan_bfs_many": "graph n_sources result strategy max_depth:number targets:ids knobs memory shape",
    "plan_sssp_many": "graph n_sources result strategy cutoff:number targets:ids knobs memory shape",
    "Plan.__call__": "source:id",
    "Plan.run_number": "number cut",
    "Plan.run": "number",
    "Plan.run_unguarded": "number",
    "MultiSourcePlan.ranked": "n_sources",
    "MultiSourcePlan.estimate_hierarchy": "rounded",
    "MultiSourcePlan.run": "source_vertices:positions lists cut",
    "MultiSourcePlan.iter_groups": "source_vertices:positions lists cut",
    "strategies": "published",
    "maps.plot": "frame vertices:places graph column unit per_unit title x y ax",
    "maps.explore": "frame vertices column x y",
    "write_geoparquet": "frame path vertices:places x y crs hulls ratio",
    "tensors.to_torch": "array",
    "pandana.Network.__init__": "node_x node_y edge_from:ends edge_to:ends edge_weights twoway",
    "pandana.Network.from_hdf5": "cls filename migrate_legacy",
    "pandana.Network.save_hdf5": "filename rm_nodes",
    "pandana.Network.precompute": "distance",
    "pandana.Network.set": "node_ids variable name",
    "pandana.Network.aggregate": "distance type decay imp_name name",
    "pandana.Network.low_connectivity_nodes": "impedance count imp_name",
    "pandana.Network.get_node_ids": "x_col y_col mapping_distance",
    "pandana.Network.init_pois": "_ __",
    "pandana.Network.set_pois": "category maxdist maxitems x_col y_col mapping_distance",
    "pandana.Network.nearest_pois": "distance category num_pois max_distance imp_name include_poi_ids",
    "pandana.Network.nodes_in_range": "nodes:some_ids radius imp_name",
    "pandana.Network.shortest_path": "node_a node_b imp_name",
    "pandana.Network.shortest_paths": "nodes_a:some_ids nodes_b:some_ids imp_name",
    "pandana.Network.shortest_path_length": "node_a node_b imp_name",
    "pandana.Network.shortest_path_lengths": "nodes_a:some_ids nodes_b:some_ids imp_name",
    "pandana.Network.plot": "data bbox plot_type fig_kwargs plot_kwargs cbar_kwargs",
    "csgraph.from_matrix": "csgraph directed weighted",
    "csgraph.dijkstra": "csgraph directed indices:some_positions return_predecessors unweighted limit min_only",
    "csgraph.shortest_path": "csgraph method directed return_predecessors unweighted overwrite indices:some_positions",
    "csgraph.johnson": "csgraph directed indices:some_positions return_predecessors unweighted",
    "csgraph.bellman_ford": "csgraph directed indices:some_positions return_predecessors unweighted",
    "csgraph.breadth_first_order": "csgraph i_start directed return_predecessors",
    "csgraph.breadth_first_tree": "csgraph i_start directed",
    "pipelines.run_job": "edges:edges output client options",
    "pipelines.JobResult.tables": "columns",
    "pipelines.JobResult.to_arrow": "columns",
    "pipelines.JobResult.to_pandas": "columns",
}
# Options of result kinds, which stand in **options.
OPTIONS_OF_KINDS = (
    "k groups:per_source groups_of_targets:per_source along:along edges cutoffs:numbers values:per_vertex decay unreached "
    "source_weights:per_source target_weights:per_source start_costs:per_source "
    "volumes:per_pair through:through of endpoints normalized samples "
    "epsilon delta seed"
)
# Options of the job, of those that Python takes, too.
JOB = (
    "output algorithm device engine strategy max_depth:job_number cutoff:job_number result direction targets:job_ids "
    "sources:job_ids keep_columns partition_by random_sources all_sources pairs:job_pairs seed directed format "
    "columns header delimiter id_type weight_type vertices:job_vertices where only_vertices:job_file closed:job_file "
    "largest_component batch_size "
    "part_size workers gpu_memory scheduler_address scheduler_file tls_ca_file tls_cert "
    "tls_key worker_timeout batch_deadline graph_cache build_memory hierarchy dashboard_address certify shard notice "
    "price_requests price_gb resume report unreached sort nearest_k values cutoffs:job_numbers decay geometry along "
    "of through:job_through endpoints normalized samples epsilon delta unconnected"
)

IDS = [30, 10, 20]
EDGES: dict[str, list[Any]] = {"u": [30, 10, 20], "v": [10, 20, 40], "w": [1, 2, 4]}
NAMES = {30: "b", 10: "c", 20: "a", 40: "d"}
ATTRIBUTES = {"jobs": [7, 1, 100, 20], "area": [0.5, 2.0, 1.5, 0.25]}
VERTICES = [30, 10, 20, 40]


@cache
def graph(text: bool) -> kt.Graph:
    """Return the graph of ``EDGES``, with names in place of integers if ``text``."""
    table = {name: named(column, text) if name != "w" else column for name, column in EDGES.items()}
    return kt.graph_from_edges(table, weight="w", directed=False, edge_ids=True)


def named(ids: list[Any], text: bool) -> list[Any]:
    """Return ids of vertices as those of the graph of text."""
    return [NAMES[each] for each in ids] if text else list(ids)


class Door(NamedTuple):
    """A call with one argument that is crossed with containers.

    ``call(text, value, partner)`` returns a result; ``forms(text)`` returns the containers, with ``plain`` first, of which
    the others have the result.
    """

    call: Callable[[bool, Any, Any], Any]
    plain: Callable[[bool], Form]
    forms: Callable[[bool], list[Form]]
    texts: tuple[bool, ...] = (False, True)
    is_slow: bool = False


def of_ids(call: Callable[..., Any], must_be_known: bool = True, **facts: Any) -> Door:
    """A door of a list of ids."""
    ids = IDS

    def forms(text: bool) -> list[Form]:
        return [
            *containers.columns(named(ids, text)),
            *containers.no_ids(named(ids, text), must_be_known),
        ]

    return Door(
        lambda text, value, _: call(text, value),
        lambda text: Form("plain", named(ids, text)),
        forms,
        **facts,
    )


def of_columns(call: Callable[..., Any], ids: list[int], **facts: Any) -> Door:
    """A door of a list of ids, of which the drop-in of another library has the rules for wrong ones."""

    def forms(text: bool) -> list[Form]:
        return [
            form._replace(must=containers.EITHER) for form in containers.columns(named(ids, text))
        ]

    return Door(
        lambda text, value, _: call(text, value),
        lambda text: Form("plain", named(ids, text)),
        forms,
        **facts,
    )


def of_one_id(call: Callable[..., Any]) -> Door:
    def forms(text: bool) -> list[Form]:
        return containers.one_id(named([30], text)[0])

    return Door(
        lambda text, value, _: call(text, value),
        lambda text: Form("plain", named([30], text)[0]),
        forms,
    )


def optional(door: Door) -> Door:
    """A door where None is no value of the argument."""
    return door._replace(
        forms=lambda text: [form for form in door.forms(text) if form.value is not None]
    )


def of_number(call: Callable[..., Any], **facts: Any) -> Door:
    return Door(
        lambda text, value, _: call(text, value),
        lambda _: Form("plain", 3),
        lambda _: containers.one_number(3),
        texts=(False,),
        **facts,
    )


def of_numbers(call: Callable[..., Any], **facts: Any) -> Door:
    return Door(
        lambda text, value, _: call(text, value),
        lambda _: Form("plain", [1, 3, 6]),
        lambda _: containers.numbers([1, 3, 6]),
        texts=(False,),
        **facts,
    )


def of_positions(call: Callable[..., Any], wrong: bool = True) -> Door:
    """A door of vertex numbers."""

    def forms(_: bool) -> list[Form]:
        right = containers.columns([2, 0, 1])
        return (
            [*right, *containers.no_ids([2, 0, 1])]
            if wrong
            else [each._replace(must=containers.EITHER) for each in right]
        )

    return Door(
        lambda text, value, _: call(text, value),
        lambda _: Form("plain", [2, 0, 1]),
        forms,
        texts=(False,),
    )


def per(
    call: Callable[..., Any],
    values: list[Any],
    partner: list[int] | None = None,
    wrong: bool = True,
    by_ids: bool = True,
    may_be_null: bool = False,
) -> Door:
    """A door of a value per source, target or row, beside its partner."""
    ids = IDS if partner is None else partner

    def forms(text: bool) -> list[Form]:
        right = [form._replace(must=form.must) for form in containers.columns(values)]
        return [
            *(
                form._replace(must=containers.EITHER) if "generator" in form.name else form
                for form in right
            ),
            *(containers.no_numbers(values, may_be_null) if wrong else ()),
            *containers.labelled(values, named(ids, text), by_ids),
        ]

    def door(text: bool, value: Any, given: Any) -> Any:
        return call(text, value, named(ids, text) if given is None else given)

    return Door(door, lambda _: Form("plain", values), forms)


def per_vertex(call: Callable[..., Any]) -> Door:
    """A door of a column with a value per vertex, by ascending id or by labels."""
    values = [7, 1, 100, 20]

    def forms(text: bool) -> list[Form]:
        by_ids = pd.Series(values, sorted(named(VERTICES, text)))
        labels = containers.indexes(len(values))
        return [
            *(form for form in containers.columns(values) if form.name != "generator"),
            *(form for form in containers.no_numbers(values) if form.name != "mapping"),
            Form("by ids", by_ids),
            Form("by ids in another order", by_ids.iloc[[2, 0, 3, 1]]),
            Form("by ids with a name", by_ids.iloc[::-1].rename_axis("osmid")),
            *(
                Form(f"index {name}", pd.Series(values, index), containers.REFUSED)
                for name, index in labels.items()
            ),
        ]

    return Door(lambda text, value, _: call(text, value), lambda _: Form("plain", values), forms)


def of_pairs(
    call: Callable[..., Any], first: list[int], second: list[int], are_edges: bool = False
) -> Door:
    def forms(text: bool) -> list[Form]:
        return containers.pairs(named(first, text), named(second, text), are_edges)

    return Door(
        lambda text, value, _: call(text, value),
        lambda text: Form("plain", (named(first, text), named(second, text))),
        forms,
    )


def of_ends(
    call: Callable[..., Any],
    first: list[int],
    second: list[int],
    leads: bool,
    must: str | None = None,
) -> Door:
    """A door of one of two columns of ids, which ``leads`` if the rows are in its order."""

    def forms(text: bool) -> list[Form]:
        found = containers.ends(named(first, text), named(second, text), leads)
        return (
            found
            if must is None
            else [
                form._replace(must=must)
                for form in found
                if not {"beside", "another"} & {*form.name.split()}
            ]
        )

    def plain(text: bool) -> Form:
        return Form("plain", named(first, text), partner=named(second, text))

    return Door(call, plain, forms)


def of_any_table(call: Callable[..., Any], columns: Callable[[], dict[str, list[Any]]]) -> Door:
    """A door of a table in each library, whose order and index say nothing."""

    def forms(_: bool) -> list[Form]:
        table = columns()
        turned = pd.DataFrame(table)
        return [
            *(Form(name, each) for name, each in containers.frames(table)),
            *(Form(f"index {name}", turned.set_axis(index)) for name, index in _labels(table)),
            Form("columns in another order", turned[turned.columns[::-1]]),
            Form("one more column", turned.assign(name="x"), containers.EITHER),
            *(
                Form(f"without {name}", turned.drop(columns=name), containers.REFUSED)
                for name in table
            ),
            Form("no row", turned.iloc[:0], containers.REFUSED),
            Form("a list", [1, 2, 3], containers.REFUSED),
        ]

    return Door(
        lambda text, value, _: call(text, value),
        lambda _: Form("plain", columns()),
        forms,
        texts=(False,),
    )


def _labels(table: dict[str, list[Any]]) -> list[tuple[str, pd.Index]]:
    return list(containers.indexes(len(next(iter(table.values())))).items())


def of_tables(call: Callable[..., Any], columns: dict[str, list[Any]]) -> Door:
    """A door of a table of vertices."""

    def forms(text: bool) -> list[Form]:
        return containers.vertex_tables(named(VERTICES, text), columns)

    def plain(text: bool) -> Form:
        return Form("plain", {"vertex": named(VERTICES, text), **columns})

    return Door(lambda text, value, _: call(text, value), plain, forms)


def of_points(call: Callable[..., Any], columns: dict[str, list[Any]]) -> Door:
    """A door of a table whose rows are no vertices."""

    def forms(_: bool) -> list[Form]:
        return containers.point_tables(columns)

    return Door(lambda text, value, _: call(text, value), lambda _: Form("plain", columns), forms)


def of_rows_of_edges(
    call: Callable[..., Any],
    column: Callable[[Any], Any],
    wrong: bool = True,
    may_be_null: bool = False,
) -> Door:
    """A door of a value per row of the edge list; ``column(values)`` puts it into the form of the argument."""
    values = [5, 3, 8]

    def forms(_: bool) -> list[Form]:
        unlabelled = [
            *containers.columns(values),
            *(containers.no_numbers(values, may_be_null) if wrong else ()),
        ]
        found = [
            form._replace(value=column(form.value))
            for form in unlabelled
            if form.name != "generator"
        ]
        for form in containers.labelled(values, [0, 1, 2], by_ids=False):
            index = form.partner.index if isinstance(form.partner, pd.Series) else None
            found.append(
                form._replace(value=column(form.value), partner=pd.DataFrame(EDGES, index))
            )
        return found

    def door(_: bool, value: Any, edges: Any) -> Any:
        return call(EDGES if edges is None else edges, value)

    return Door(door, lambda _: Form("plain", column(values)), forms, texts=(False,))


def of_closing_weights(call: Callable[[Any], Any], forms: list[Form]) -> Door:
    """A door of a weight per row of the edge list, of which the last closes its row: all forms give one graph."""
    return Door(
        lambda _, value, __: call(value), lambda _: forms[0], lambda _: forms, texts=(False,)
    )


def of_files(
    call: Callable[..., Any],
    table: dict[str, list[Any]],
    ids: tuple[str, ...],
    ways: tuple[str, ...],
) -> Door:
    """A door of a file, in which some columns hold ids; a table in memory is refused, or has the result of the file."""

    def forms(text: bool) -> list[Form]:
        own = _of_text(table, ids, text)
        found = [Form(f"file .{way}", write(own, way)) for way in ways]
        found += [
            Form(f"{name} in memory", frame, containers.EITHER)
            for name, frame in containers.frames(own)
        ]
        floats = {
            name: [float(each) for each in column] if name in ids else column
            for name, column in table.items()
        }
        other = _of_text(table, ids, not text)
        found += [
            Form("no such file", "no/such/file.parquet", containers.REFUSED),
            Form("5", 5, containers.REFUSED),
        ]
        if ids:
            found.append(Form("ids of the other type", write(other, "parquet"), containers.REFUSED))
        if ids and not text:
            found.append(Form("ids as floats", write(floats, "parquet"), containers.REFUSED))
        return found

    return Door(
        lambda text, value, _: call(text, value),
        lambda text: Form("plain", write(_of_text(table, ids, text), ways[0])),
        forms,
        is_slow=True,
    )


def _of_text(table: dict[str, list[Any]], ids: tuple[str, ...], text: bool) -> dict[str, list[Any]]:
    return {name: named(column, text) if name in ids else column for name, column in table.items()}


_FOLDER = tempfile.TemporaryDirectory(prefix="doors-")


def write(table: dict[str, list[Any]], ending: str) -> str:
    """Write a table as a file and return its path."""
    path = Path(_FOLDER.name) / f"{len(list(Path(_FOLDER.name).iterdir()))}.{ending}"
    frame = pd.DataFrame(table)
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "txt":
        path.write_text("".join(f"{each}\n" for each in next(iter(table.values()))))
    else:
        frame.to_csv(path, index=False)
    return str(path)


def edges_with(value: Any, name: str) -> Callable[[Any], Any]:
    return lambda edges: kt.graph_from_edges(edges, **{name: value})


def job(text: bool, **options: Any) -> Any:
    """Run the job in a new folder and return what it has written."""
    from kepler_traverse.pipelines import run_job

    options = {"algorithm": "sssp", "report": False} | options
    if "pairs" not in options and "result" not in options:
        options["result"] = "distances"
    if "pairs" not in options:
        options.setdefault("sources", named([30], text))
    with tempfile.TemporaryDirectory(prefix="doors-job-") as folder:
        return run_job(graph(text), output=Path(folder) / "out", **options).to_pandas()


def many(
    text: bool, sources: Any, result: str = "summary", algorithm: str = "sssp", **options: Any
) -> Any:
    return getattr(kt, f"{algorithm}_many")(graph(text), sources, result=result, **options)


def network() -> Network:
    x = pd.Series([0.0, 1.0, 2.0, 3.0], [30, 10, 20, 40])
    return Network(
        x, x, pd.Series(EDGES["u"]), pd.Series(EDGES["v"]), pd.DataFrame({"w": EDGES["w"]})
    )


def snapped(text: bool, **options: Any) -> Any:
    """Vertices near two places, one of which lies beyond 300 km."""
    given = {"points": {"x": [13.4, 8.0], "y": [52.1, 48.0]}, "coordinates": "degrees"}
    given["vertices"] = {"vertex": named(VERTICES, text), **PLACES}
    return kt.snap(graph(text), **given | {"cutoff": 300_000} | options)


def geoparquet(text: bool, vertices: Any) -> Any:
    path = Path(_FOLDER.name) / "written.parquet"
    kt.write_geoparquet(kt.sssp(graph(text), named([30], text)[0]), path, vertices)
    return pq.read_table(path)["geometry"].to_pylist()


def picture(text: bool, vertices: Any) -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from kepler_traverse import maps

    axes = maps.plot(kt.sssp(graph(text), named([30], text)[0]), vertices)
    points = axes.collections[0].get_offsets().tolist()
    pyplot.close(axes.figure)
    return points


def from_columns(text: bool, value: Any, partner: Any) -> Any:  # noqa: ARG001
    return kt.graph_from_edges(value, partner, EDGES["w"])


def weights_of(text: bool, value: Any, partner: Any) -> Any:  # noqa: ARG001
    """A weight per row, beside ends that have the labels of the partner."""
    index = partner.index if isinstance(partner, pd.Series) else None
    ends = [
        pd.Series(EDGES[name], index) if index is not None else EDGES[name] for name in ("u", "v")
    ]
    return kt.graph_from_edges(*ends, weight=value, edge_ids=True)


def reverse_weights_of(text: bool, value: Any, partner: Any) -> Any:  # noqa: ARG001
    index = partner.index if isinstance(partner, pd.Series) else None
    columns = [
        pd.Series(EDGES[name], index) if index is not None else EDGES[name]
        for name in ("u", "v", "w")
    ]
    return kt.graph_from_edges(*columns, reverse_weight=value, edge_ids=True)


def directions_of(text: bool, value: Any, partner: Any) -> Any:  # noqa: ARG001
    index = partner.index if isinstance(partner, pd.Series) else None
    ends = [
        pd.Series(EDGES[name], index) if index is not None else EDGES[name] for name in ("u", "v")
    ]
    return kt.graph_from_edges(*ends, oneway=value)


def volumes_of(text: bool, value: Any, partner: Any) -> Any:
    return kt.sssp_pairs(
        graph(text), partner, named([40, 40, 30], text), result="flows", volumes=value
    )


def volumes_of_both(text: bool, value: Any, partner: Any) -> Any:
    """Volumes beside two columns with the labels of the partner."""
    ends = named([40, 40, 30], text)
    ends = pd.Series(ends, partner.index) if isinstance(partner, pd.Series) else ends
    return kt.sssp_pairs(graph(text), partner, ends, result="flows", of="pairs", volumes=value)


def certified(_: bool, value: Any, partner: Any) -> Any:
    found = kt.sssp_many(graph(False), [10, 20, 30], result="matrix")
    sources = pd.Series([0, 1, 2], partner.index) if isinstance(partner, pd.Series) else [0, 1, 2]
    return kt.certify_many(graph(False), sources, found, limit=value).failures


# Of two weights per row, one below 0 closes its direction as well.
BELOW_0 = [Form("below 0", [3, 8, -1]), Form("below 0 in an array", np.array([3, 8, -7], np.int32))]
MATRIX = scipy.sparse.csr_array(np.array([[0, 1, 0, 0], [1, 0, 2, 0], [0, 2, 0, 4], [0, 0, 4, 0]]))
PLACES = {"x": [13.5, 13.0, 13.25, 0.5], "y": [52.0, 52.25, 52.5, 1.5]}
PAIR_TABLE = {"origin": [30, 20, 30], "destination": [40, 10, 20]}
FIRST, SECOND = [30, 20, 30], [40, 10, 20]

# A link and the one back beside each other, so that parallel paths share the trips.
LINKS = {"src": [30, 10, 20, 10, 20, 40], "dst": [10, 20, 40, 30, 10, 20]}
CAPACITY = [4, 6, 8, 5, 3, 7]

# By function and argument. What follows a # is another call of the same argument.
DOORS: dict[str, Door] = {
    "graph_from_edges.vertices": of_ids(
        lambda text, v: kt.graph_from_edges(_edges(text), vertices=v), must_be_known=False
    ),
    "graph_from_edges.only_vertices": of_ids(
        lambda text, v: kt.graph_from_edges(_edges(text), only_vertices=v)
    ),
    "graph_from_edges.closed": of_ids(
        lambda text, v: kt.graph_from_edges(_weighted(text), weight="w", closed=v)
    ),
    "graph_from_edges.edges": of_pairs(
        lambda _, v: kt.graph_from_edges(v), FIRST, SECOND, are_edges=True
    ),
    "graph_from_edges.edges#two": of_pairs(
        lambda _, v: kt.graph_from_edges(v), FIRST[:2], SECOND[:2], are_edges=True
    ),
    "graph_from_edges.src": of_ends(from_columns, EDGES["u"], EDGES["v"], leads=True),
    "graph_from_edges.dst": of_ends(
        lambda text, v, p: from_columns(text, p, v), EDGES["v"], EDGES["u"], leads=False
    ),
    "graph_from_edges.weight": per(weights_of, [5, 3, 8], by_ids=False),
    "graph_from_edges.reverse_weight": per(
        reverse_weights_of, [5, 3, 8], by_ids=False, may_be_null=True
    ),
    "graph_from_edges.reverse_weight#null": of_closing_weights(
        lambda v: reverse_weights_of(False, v, None), [*containers.one_is_null([3, 8]), *BELOW_0]
    ),
    "graph_from_edges.reverse_weight#not finite": of_closing_weights(
        lambda v: reverse_weights_of(False, v, None), containers.one_is_not_finite([3, 8])
    ),
    "graph_from_edges.oneway": per(directions_of, [1, 0, -1], wrong=False, by_ids=False),
    "read_graph.paths": of_files(
        lambda _, v: kt.read_graph(v, device="cpu"),
        {"u": EDGES["u"], "v": EDGES["v"]},
        (),
        ("csv", "parquet"),
    ),
    "read_graph.vertices": of_ids(
        lambda text, v: kt.read_graph(_edges(text), device="cpu", vertices=v), must_be_known=False
    ),
    "read_graph.only_vertices": of_ids(
        lambda text, v: kt.read_graph(_edges(text), device="cpu", only_vertices=v)
    ),
    "read_graph.closed": of_ids(
        lambda text, v: kt.read_graph(_weighted(text), device="cpu", weight_column="w", closed=v)
    ),
    "with_weights.weight": of_rows_of_edges(
        lambda edges, v: kt.with_weights(_built(edges), v), lambda v: v, may_be_null=True
    ),
    "with_weights.weight#null": of_closing_weights(
        lambda v: kt.with_weights(_built(EDGES), v), containers.one_is_null([3, 8])
    ),
    "with_weights.weight#not finite": of_closing_weights(
        lambda v: kt.with_weights(_built(EDGES), v), containers.one_is_not_finite([3, 8])
    ),
    "with_weights.reverse_weight": of_rows_of_edges(
        lambda edges, v: _with_weights_back(edges, v), lambda v: v, may_be_null=True
    ),
    "with_weights.reverse_weight#null": of_closing_weights(
        lambda v: _with_weights_back(EDGES, v), [*containers.one_is_null([3, 8]), *BELOW_0]
    ),
    "with_weights.reverse_weight#not finite": of_closing_weights(
        lambda v: _with_weights_back(EDGES, v), containers.one_is_not_finite([3, 8])
    ),
    "Graph.to_numbers.ids": of_ids(lambda text, v: graph(text).to_numbers(v)),
    "hub_labels.HubLabels.between.sources": of_positions(
        lambda _, v: graph(False).labels().between(v, [0, 1, 3])
    ),
    "hub_labels.HubLabels.between.targets": of_positions(
        lambda _, v: graph(False).labels().between([0, 1, 3], v)
    ),
    "Graph.ids_at.numbers": of_positions(lambda _, v: graph(False).ids_at(v)),
    "assignment.assign.links": of_any_table(
        lambda _, v: _flows(links=v), lambda: {**_links(), "capacity": CAPACITY}
    ),
    "assignment.assign.links#src": of_ends(
        lambda _, v, p: _flows(links=_links(src=v, dst=p)), LINKS["src"], LINKS["dst"], leads=True
    )._replace(texts=(False,)),
    "assignment.assign.links#dst": of_ends(
        lambda _, v, p: _flows(links=_links(src=p, dst=v)), LINKS["dst"], LINKS["src"], leads=False
    )._replace(texts=(False,)),
    "assignment.assign.links#capacity": per(
        lambda _, v, p: _flows(links=_links(src=p, capacity=v)),
        CAPACITY,
        LINKS["src"],
        by_ids=False,
    )._replace(texts=(False,)),
    "assignment.assign.trips": of_any_table(
        lambda _, v: _flows(trips=v), lambda: {**PAIR_TABLE, "volume": [5, 3, 8]}
    ),
    "assignment.assign.trips#origin": of_ends(
        lambda _, v, p: _flows(trips={"origin": v, "destination": p, "volume": [5, 3, 8]}),
        FIRST,
        SECOND,
        leads=True,
    )._replace(texts=(False,)),
    "assignment.assign.trips#volume": per(
        lambda _, v, p: _flows(trips={"origin": p, "destination": SECOND, "volume": v}),
        [5, 3, 8],
        FIRST,
        by_ids=False,
    )._replace(texts=(False,)),
    "assignment.assign.closed": of_ids(lambda text, v: _assigned(text, closed=v).links),
    "assignment.Equilibrium.skims.zones": of_ids(
        lambda text, v: _assigned(text).skims("length", zones=v)
    ),
    "planning.write_omx.table": of_any_table(
        lambda _, v: _omx(v), lambda: {**PAIR_TABLE, "time": [5, 3, 8]}
    ),
    "planning.write_omx.table#column": per(
        lambda _, v, p: _omx({"origin": p, "destination": SECOND, "time": v}),
        [5, 3, 8],
        FIRST,
        wrong=False,
        by_ids=False,
    )._replace(texts=(False,)),
    "planning.write_ubodt.sources": of_ids(lambda _, v: _ubodt(v), texts=(False,)),
    "bfs.source": of_one_id(lambda text, v: kt.bfs(graph(text), v)),
    "bfs.max_depth": of_number(lambda _, v: kt.bfs(graph(False), 30, max_depth=v)),
    "bfs.targets": of_ids(lambda text, v: kt.bfs(graph(text), named([40], text)[0], targets=v)),
    "sssp.source": of_one_id(lambda text, v: kt.sssp(graph(text), v)),
    "sssp.cutoff": of_number(lambda _, v: kt.sssp(graph(False), 30, cutoff=v)),
    "sssp.targets": of_ids(lambda text, v: kt.sssp(graph(text), named([40], text)[0], targets=v)),
    "bfs_many.sources": of_ids(lambda text, v: many(text, v, algorithm="bfs")),
    "bfs_many.max_depth": per(
        lambda text, v, p: many(text, p, max_depth=v, algorithm="bfs"), [1, 2, 0]
    ),
    "bfs_many.targets": of_ids(
        lambda text, v: many(text, named(IDS, text), "targets", algorithm="bfs", targets=v)
    ),
    "bfs_many.cutoffs": of_numbers(
        lambda _, v: many(False, IDS, "within", algorithm="bfs", cutoffs=v)
    ),
    "bfs_many.values": of_tables(
        lambda text, v: many(
            text, named(IDS, text), "opportunities", "bfs", values=v, cutoffs=[0, 1]
        ),
        ATTRIBUTES,
    ),
    "bfs_many.groups": per(
        lambda text, v, p: many(text, p, "nearest", "bfs", k=1, groups=v), [2, 1, 2], wrong=False
    ),
    "bfs_many.source_weights": per(
        lambda text, v, p: many(
            text, p, "opportunities", "bfs", values=[1, 2, 3, 4], cutoffs=[1], source_weights=v
        ),
        [5, 7, 2],
    ),
    "sssp_many.sources": of_ids(lambda text, v: many(text, v, "distances")),
    "sssp_many.sources#nearest": of_ids(lambda text, v: many(text, v, "nearest")),
    "sssp_many.cutoff": per(lambda text, v, p: many(text, p, cutoff=v), [1, 9, 3]),
    "sssp_many.targets": of_ids(lambda text, v: many(text, named(IDS, text), "targets", targets=v)),
    "sssp_many.targets#nearest": of_ids(
        lambda text, v: many(text, named(IDS, text), "nearest", targets=v)
    ),
    "sssp_many.targets#matrix": of_ids(
        lambda text, v: many(text, named(IDS, text), "matrix", targets=v)
    ),
    "sssp_many.cutoffs": of_numbers(lambda _, v: many(False, IDS, "isochrones", cutoffs=v)),
    "sssp_many.values": of_tables(
        lambda text, v: many(text, named(IDS, text), "opportunities", values=v, cutoffs=[0, 4]),
        ATTRIBUTES,
    ),
    "sssp_many.values#column": per_vertex(
        lambda text, v: many(text, named(IDS, text), "opportunities", values=v, cutoffs=[0, 4])
    ),
    "sssp_many.values#mapping": per_vertex(
        lambda text, v: many(
            text, named(IDS, text), "opportunities", values={"jobs": v}, cutoffs=[0, 4]
        )
    ),
    "sssp_many.groups": per(
        lambda text, v, p: many(text, p, "nearest", k=1, groups=v), ["s", "h", "s"], wrong=False
    ),
    "sssp_many.source_weights": per(
        lambda text, v, p: many(
            text, p, "opportunities", values=[1, 2, 3, 4], cutoffs=[4], source_weights=v
        ),
        [5, 7, 2],
    ),
    "bfs_pairs.origins": of_pairs(lambda text, v: kt.bfs_pairs(graph(text), v), FIRST, SECOND),
    "bfs_pairs.destinations": of_ends(
        lambda text, v, p: kt.bfs_pairs(graph(text), p, v), FIRST, SECOND, leads=False
    ),
    "bfs_pairs.max_depth": of_number(
        lambda _, v: kt.bfs_pairs(graph(False), FIRST, SECOND, max_depth=v)
    ),
    "sssp_pairs.origins": of_pairs(lambda text, v: kt.sssp_pairs(graph(text), v), FIRST, SECOND),
    "sssp_pairs.origins#one": of_pairs(
        lambda text, v: kt.sssp_pairs(graph(text), v), FIRST[:1], SECOND[:1]
    ),
    "sssp_pairs.origins#two": of_pairs(
        lambda text, v: kt.sssp_pairs(graph(text), v), FIRST[:2], SECOND[:2]
    ),
    "sssp_pairs.destinations": of_ends(
        lambda text, v, p: kt.sssp_pairs(graph(text), v, p), FIRST, SECOND, leads=True
    ),
    "sssp_pairs.cutoff": of_number(
        lambda _, v: kt.sssp_pairs(graph(False), FIRST, SECOND, cutoff=v)
    ),
    "paths.targets": of_pairs(lambda text, v: kt.paths(graph(text), v), FIRST, SECOND),
    "paths.targets#one": of_pairs(lambda text, v: kt.paths(graph(text), v), FIRST[:1], SECOND[:1]),
    "paths.targets#two": of_pairs(lambda text, v: kt.paths(graph(text), v), FIRST[:2], SECOND[:2]),
    "paths.targets#of a frame": of_ids(
        lambda text, v: kt.paths(kt.sssp(graph(text), named([40], text)[0]), v)
    ),
    "paths.along": of_rows_of_edges(
        lambda edges, v: kt.paths(_built(edges), (FIRST, SECOND), along=v), lambda v: {"metres": v}
    ),
    "paths.along#frame": of_rows_of_edges(
        lambda edges, v: kt.paths(_built(edges), (FIRST, SECOND), along=v),
        lambda v: _as_frame(v),
        wrong=False,
    ),
    "certify.cutoff": of_number(
        lambda _, v: kt.certify(graph(False), kt.sssp(graph(False), 30, cutoff=3), cutoff=v).valid
    ),
    "certify.max_depth": of_number(
        lambda _, v: (
            kt.certify(graph(False), kt.bfs(graph(False), 30, max_depth=3), max_depth=v).valid
        )
    ),
    "certify_many.source_vertices": of_positions(
        lambda _, v: (
            kt.certify_many(
                graph(False), v, kt.sssp_many(graph(False), [30, 10, 20], result="matrix")
            ).valid
        )
    ),
    "certify_many.limit": per(certified, [9, 1, 3], wrong=False, by_ids=False),
    "plan_bfs.max_depth": of_number(lambda _, v: kt.plan_bfs(graph(False), max_depth=v)(30)),
    "plan_bfs.targets": of_ids(
        lambda text, v: kt.plan_bfs(graph(text), targets=v)(named([40], text)[0])
    ),
    "plan_sssp.cutoff": of_number(lambda _, v: kt.plan_sssp(graph(False), cutoff=v)(30)),
    "plan_sssp.targets": of_ids(
        lambda text, v: kt.plan_sssp(graph(text), targets=v)(named([40], text)[0])
    ),
    "plan_bfs_many.max_depth": of_number(
        lambda _, v: kt.plan_bfs_many(graph(False), n_sources=2, max_depth=v).run([0, 1])
    ),
    "plan_bfs_many.targets": of_ids(
        lambda text, v: kt.plan_bfs_many(graph(text), n_sources=2, result="targets", targets=v).run(
            [0, 1]
        )
    ),
    "plan_sssp_many.cutoff": of_number(
        lambda _, v: kt.plan_sssp_many(graph(False), n_sources=2, cutoff=v).run([0, 1])
    ),
    "plan_sssp_many.targets": of_ids(
        lambda text, v: kt.plan_sssp_many(
            graph(text), n_sources=2, result="targets", targets=v
        ).run([0, 1])
    ),
    "Plan.__call__.source": of_one_id(lambda text, v: kt.plan_sssp(graph(text))(v)),
    "MultiSourcePlan.run.source_vertices": of_positions(
        lambda _, v: kt.plan_bfs_many(graph(False), n_sources=3).run(v)
    ),
    "MultiSourcePlan.iter_groups.source_vertices": of_positions(
        lambda _, v: [
            np.array(each.distance)
            for each in kt.plan_bfs_many(graph(False), n_sources=3).iter_groups(v)
        ]
    ),
    "maps.plot.vertices": of_tables(picture, PLACES)._replace(is_slow=True),
    "write_geoparquet.vertices": of_tables(geoparquet, PLACES),
    "snap.points": of_points(
        lambda text, v: snapped(text, points=v), {"x": [13.4, 8.0], "y": [52.1, 48.0]}
    ),
    "snap.vertices": of_tables(lambda text, v: snapped(text, vertices=v), PLACES),
    "snap.cutoff": of_number(lambda _, v: snapped(False, cutoff=v)),
    "snap.around": optional(of_one_id(lambda text, v: snapped(text, around=v))),
    "pandana.Network.__init__.edge_from": of_ends(
        lambda _, v, p: (
            Network(*_axes(), pd.Series(v), pd.Series(p), pd.DataFrame({"w": EDGES["w"]}))
            .edges_df["from"]
            .tolist()
        ),
        EDGES["u"],
        EDGES["v"],
        leads=True,
        must=containers.EITHER,
    )._replace(texts=(False,)),
    "pandana.Network.__init__.edge_to": of_ends(
        lambda _, p, v: (
            Network(*_axes(), pd.Series(p), pd.Series(v), pd.DataFrame({"w": EDGES["w"]}))
            .edges_df["to"]
            .tolist()
        ),
        EDGES["u"],
        EDGES["v"],
        leads=True,
        must=containers.EITHER,
    )._replace(texts=(False,)),
    "pandana.Network.nodes_in_range.nodes": of_columns(
        lambda _, v: network().nodes_in_range(v, 3), IDS, texts=(False,)
    ),
    "pandana.Network.shortest_paths.nodes_a": of_columns(
        lambda _, v: network().shortest_paths(v, [40, 40, 40]), IDS, texts=(False,)
    ),
    "pandana.Network.shortest_paths.nodes_b": of_columns(
        lambda _, v: network().shortest_paths([40, 40, 40], v), IDS, texts=(False,)
    ),
    "pandana.Network.shortest_path_lengths.nodes_a": of_columns(
        lambda _, v: network().shortest_path_lengths(v, [40, 40, 40]), IDS, texts=(False,)
    ),
    "pandana.Network.shortest_path_lengths.nodes_b": of_columns(
        lambda _, v: network().shortest_path_lengths([40, 40, 40], v), IDS, texts=(False,)
    ),
    **{
        f"csgraph.{name}.indices": of_positions(
            lambda _, v, name=name: getattr(csgraph, name)(MATRIX, indices=v), wrong=False
        )
        for name in ("dijkstra", "shortest_path", "johnson", "bellman_ford")
    },
    "pipelines.run_job.edges": of_pairs(
        lambda _, v: _job_of(v), FIRST, SECOND, are_edges=True
    )._replace(is_slow=True),
    # Options of kinds.
    "options.groups": per(
        lambda text, v, p: many(text, p, "nearest", k=1, groups=v), [2, 1, 2], wrong=False
    ),
    "options.groups_of_targets": per(
        lambda text, v, p: many(text, named(IDS, text), "nearest", targets=p, k=1, groups=v),
        ["s", "h", "s"],
        wrong=False,
    ),
    "options.along": of_rows_of_edges(
        lambda edges, v: kt.paths(_built(edges), (FIRST, SECOND), along=v), lambda v: {"toll": v}
    ),
    "options.cutoffs": of_numbers(lambda _, v: many(False, IDS, "within", cutoffs=v)),
    "options.values": of_tables(
        lambda text, v: many(
            text, named(IDS, text), "opportunities", values=v, cutoffs=[2], direction="in"
        ),
        ATTRIBUTES,
    ),
    "options.source_weights": per(
        lambda text, v, p: many(text, p, "flows", source_weights=v), [5, 7, 2]
    ),
    "options.start_costs": per(
        lambda text, v, p: many(text, p, "nearest", start_costs=v), [5, 7, 2]
    ),
    "options.target_weights": per(
        lambda text, v, p: many(text, named(IDS, text), "flows", targets=p, target_weights=v),
        [5, 7, 2],
    ),
    "options.volumes": per(volumes_of, [5, 7, 2], [30, 20, 10], by_ids=False),
    "options.volumes#pairs": per(volumes_of_both, [5, 7, 2], [30, 20, 10], by_ids=False),
    "options.through": of_pairs(lambda text, v: _through(text, v), [30, 10, 20], [10, 20, 40]),
    "options.through#two": of_pairs(lambda text, v: _through(text, v), [30, 10], [10, 20]),
    "options.through#rows": Door(
        lambda text, v, _: _through(text, v),
        lambda _: Form("plain", [0, 2]),
        lambda _: [
            form for form in containers.columns([0, 2]) if form.name not in ("tuple", "generator")
        ],
        texts=(False,),
    ),
    # Options of the job.
    "job.max_depth": of_number(lambda _, v: job(False, algorithm="bfs", max_depth=v), is_slow=True),
    "job.cutoff": of_number(lambda _, v: job(False, cutoff=v), is_slow=True),
    "job.cutoffs": of_numbers(lambda _, v: job(False, result="within", cutoffs=v), is_slow=True),
    "job.sources": of_ids(lambda text, v: job(text, sources=v), is_slow=True),
    "job.sources#file": of_files(
        lambda text, v: job(text, sources=_path(v)),
        {"source": IDS},
        ("source",),
        ("txt", "csv", "parquet"),
    ),
    "job.targets": of_ids(lambda text, v: job(text, targets=v, result="targets"), is_slow=True),
    "job.targets#file": of_files(
        lambda text, v: job(text, targets=_path(v), result="targets"),
        {"target": IDS},
        ("target",),
        ("txt", "csv", "parquet"),
    ),
    "job.pairs": of_files(
        lambda text, v: job(text, pairs=v),
        PAIR_TABLE,
        ("origin", "destination"),
        ("csv", "parquet"),
    ),
    "job.vertices": of_files(
        lambda text, v: _job_of_files(
            text, vertices=v, values=["jobs"], cutoffs=[1], result="opportunities"
        ),
        {"vertex": VERTICES, "jobs": [7, 1, 100, 20]},
        ("vertex",),
        ("csv", "parquet"),
    ),
    "job.vertices#in memory": of_tables(
        lambda text, v: _job_of_files(
            text, vertices=v, values=["jobs"], cutoffs=[1], result="opportunities"
        ),
        {"jobs": [7, 1, 100, 20]},
    )._replace(is_slow=True),
    "job.vertices#of a graph": of_tables(
        lambda text, v: job(text, vertices=v, values=["jobs"], cutoffs=[1], result="opportunities"),
        {"jobs": [7, 1, 100, 20]},
    )._replace(is_slow=True),
    "job.vertices#of a table": of_tables(
        lambda text, v: _job_of(
            _edges(text), vertices=v, values=["jobs"], cutoffs=[1], result="opportunities"
        ),
        {"jobs": [7, 1, 100, 20]},
    )._replace(is_slow=True),
    "job.vertices#ids": of_ids(
        lambda text, v: _job_of_files(text, vertices=v), must_be_known=False, is_slow=True
    ),
    "job.closed#ids": of_ids(
        lambda text, v: _job_of_files(text, closed=v, algorithm="sssp", columns={"weight": "w"}),
        is_slow=True,
    ),
    "job.only_vertices#ids": of_ids(
        lambda text, v: _job_of_files(text, only_vertices=v), is_slow=True
    ),
    "job.closed": of_files(
        lambda text, v: _job_of_files(text, closed=v, algorithm="sssp", columns={"weight": "w"}),
        {"vertex": IDS},
        ("vertex",),
        ("txt", "parquet"),
    ),
    "job.only_vertices": of_files(
        lambda text, v: _job_of_files(text, only_vertices=v),
        {"vertex": IDS},
        ("vertex",),
        ("txt", "parquet"),
    ),
    "job.through": of_files(
        lambda text, v: job(text, result="flows", through=v),
        {"src": [30], "dst": [10]},
        ("src", "dst"),
        ("csv", "parquet"),
    ),
    "job.through#in memory": of_pairs(
        lambda text, v: job(text, result="flows", through=v), [30, 10], [10, 20]
    )._replace(is_slow=True),
}


def _axes() -> tuple[pd.Series, pd.Series]:
    x = pd.Series([0.0, 1.0, 2.0, 3.0], [30, 10, 20, 40])
    return x, x


def _path(value: Any) -> Any:
    return Path(value) if isinstance(value, str) else value


def _edges(text: bool) -> dict[str, list[Any]]:
    return {"u": named(EDGES["u"], text), "v": named(EDGES["v"], text)}


def _weighted(text: bool) -> dict[str, list[Any]]:
    return {**_edges(text), "w": EDGES["w"]}


def _built(edges: Any) -> kt.Graph:
    return kt.graph_from_edges(edges, weight="w", directed=False, edge_ids=True)


def _assigned(text: bool, **options: Any) -> Any:
    """Assign trips of one pair on the edges of ``EDGES``, in both directions."""
    ends = {
        "src": [*EDGES["u"], *EDGES["v"]],
        "dst": [*EDGES["v"], *EDGES["u"]],
    }
    links = {name: named(ids, text) for name, ids in ends.items()}
    links |= {"free_flow_time": [1.0] * 6, "length": [2.0] * 6}
    trips = {"origin": named([30], text), "destination": named([10], text), "volume": [5.0]}
    return assign(links, trips, cost=BPR(b=0, power=1, capacity=1), **options)


def _links(**columns: Any) -> dict[str, Any]:
    return {**LINKS, "free_flow_time": [1, 2, 1, 1, 3, 1], "capacity": CAPACITY, **columns}


def _flows(links: Any = None, trips: Any = None) -> Any:
    links = _links() if links is None else links
    trips = {**PAIR_TABLE, "volume": [5, 3, 8]} if trips is None else trips
    result = assign(links, trips, cost=BPR(b=0.15, power=4), gap=1e-3)
    return result.links


def _ubodt(sources: Any) -> Any:
    with tempfile.TemporaryDirectory(prefix="doors-") as folder:
        path = Path(folder) / "ubodt.txt"
        write_ubodt(graph(False), path, 9, sources=sources)
        return pd.read_csv(path, sep=";")


def _omx(table: Any) -> Any:
    pytest.importorskip("h5py")
    with tempfile.TemporaryDirectory(prefix="doors-") as folder:
        path = Path(folder) / "skims.omx"
        write_omx(path, table)
        return read_omx(path)


def _built_both_ways(edges: Any) -> kt.Graph:
    columns = (edges[name] for name in ("u", "v", "w"))
    return kt.graph_from_edges(*columns, reverse_weight=edges["w"], edge_ids=True)


def _with_weights_back(edges: Any, value: Any) -> kt.Graph:
    return kt.with_weights(_built_both_ways(edges), [1, 2, 3], reverse_weight=value)


def _as_frame(value: Any) -> Any:
    return value.to_frame("metres") if isinstance(value, pd.Series) else {"metres": value}


def _through(text: bool, value: Any) -> Any:
    return many(text, named(VERTICES, text), "flows", through=value)


def _job_of(edges: Any, **options: Any) -> Any:
    from kepler_traverse.pipelines import run_job

    with tempfile.TemporaryDirectory(prefix="doors-job-") as folder:
        return run_job(
            edges, output=Path(folder) / "out", all_sources=True, report=False, **options
        ).to_pandas()


def _job_of_files(text: bool, **options: Any) -> Any:
    from kepler_traverse.pipelines import run_job

    edges = write(_weighted(text), "csv")
    with tempfile.TemporaryDirectory(prefix="doors-job-") as folder:
        options |= {"all_sources": True, "report": False, "device": "cpu", "header": "yes"}
        return run_job(edges, output=Path(folder) / "out", **options).to_pandas()
