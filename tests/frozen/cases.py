"""Four small graphs, and the calls, jobs and wrong calls whose behaviour is recorded.

A call is text, which is also the name of its record: ``many`` is ``bfs_many`` or ``sssp_many``, and ``limit`` is their
``max_depth`` or ``cutoff``. ``s``, ``t``, ``o`` and ``d`` are sources, targets, origins and destinations of the graph ``g``.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from kepler_traverse import read_graph


@dataclass(frozen=True)
class Case:
    """An edge list in a folder, and what is asked of its graph."""

    name: str
    directed: bool
    edges: pd.DataFrame
    sources: list  # of which one is given twice
    targets: list
    limit: float
    options: dict  # of the reader

    @property
    def pairs(self):
        """Columns of origins and destinations, in no order and one pair twice."""
        some = [*self.targets, *reversed(self.targets)]
        return [self.sources[i % len(self.sources)] for i in range(len(some))], some


def _grid(side, rng):
    row, column = np.divmod(np.arange(side * side), side)
    src = np.concatenate([np.flatnonzero(column < side - 1), np.flatnonzero(row < side - 1)])
    dst = src + np.repeat([1, side], src.size // 2)
    return src, dst, rng.integers(0, 9, src.size)


def cases():
    """Return the four graphs by name."""
    rng = np.random.default_rng(32)
    # Undirected, integer weights of which some are 0, ids with gaps and below 0, a second component and a single vertex.
    src, dst, weight = _grid(6, rng)
    src, dst = np.append(src, [40, 41, 42, 50]), np.append(dst, [41, 42, 40, 50])
    streets = pd.DataFrame(
        {"src": src * 7 - 20, "dst": dst * 7 - 20, "weight": np.append(weight, [3, 1, 2, 5])}
    )
    # Directed, float32 weights whose sums round, text ids, parallel edges, loops, vertices that nothing leads to.
    src, dst = rng.integers(0, 30, 70), rng.integers(0, 24, 70)
    names = np.array([f"{'é' if i % 3 == 0 else 'p'}{i}" for i in range(30)])
    pages = pd.DataFrame(
        {
            "src": names[src],
            "dst": names[dst],
            "weight": (rng.integers(1, 40, 70) / 10).astype(np.float32),
        }
    )
    # Directed, some integer weights below 0: the difference of two potentials, so that no cycle is negative.
    src, dst = rng.integers(0, 25, (2, 60))
    height = rng.integers(0, 30, 25)
    cost = rng.integers(0, 6, 60) + height[src] - height[dst]
    tolls = pd.DataFrame(
        {"src": src + 100, "dst": dst + 100, "weight": np.where(src == dst, 1, cost)}
    )
    # Undirected, float64 weights, several components.
    src, dst = rng.integers(0, 12, (2, 30)) + np.repeat([0, 12, 24], 10)
    islands = pd.DataFrame({"src": src, "dst": dst, "weight": rng.integers(1, 99, 30) / 7})
    for table in (streets, pages, tolls, islands):
        table["climb"], table["toll"] = (
            rng.integers(0, 900, len(table)),
            rng.integers(-5, 50, len(table)) / 4,
        )
    made = (
        Case("streets", False, streets, [1, -20, 267, 71, -20], [225, 1, 330, 260], 12, {}),
        Case(
            "pages",
            True,
            pages,
            ["é0", "p7", "p29", "é3", "p7"],
            ["é9", "p1", "p28", "é0"],
            4.5,
            {},
        ),
        Case("tolls", True, tolls, [103, 100, 124, 111, 103], [120, 103, 105, 108], 3, {}),
        Case(
            "islands",
            False,
            islands,
            [0, 13, 30, 5, 13],
            [3, 20, 30, 11],
            9.25,
            {"weight_type": "float64"},
        ),
    )
    return {case.name: case for case in made}


def write(case, folder):
    """Write the files of a case, and return its graph, which knows its rows."""
    folder.mkdir()
    path = folder / "edges.parquet"
    case.edges.to_parquet(path, index=False)
    graph = read_graph(path, directed=case.directed, device="cpu", edge_ids=True, **case.options)
    ids = list(dict.fromkeys(case.sources))
    limits = [[2, 0, 5, 1][i % 4] for i in range(len(ids))]
    tables = {
        "places": attributes(graph),
        "vertices": attributes(graph)[1:],
        "stops": pd.DataFrame(
            {
                "stop": ids,
                "kind": [["a", "b"][i % 2] for i in range(len(ids))],
                "most": limits,
                "people": [3, 0, 7, 2][: len(ids)],
            }
        ),
        "clinics": pd.DataFrame({"clinic": case.targets}),
        "named": case.edges[["src", "dst"]][::3],
        "trips": pd.DataFrame(dict(zip(("origin", "destination"), case.pairs, strict=True))).assign(
            riders=range(8)
        ),
    }
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    return graph


def attributes(graph):
    """A table of all vertices with coordinates, in another order than the graph's."""
    ids = np.asarray(graph.ids)[::-1]
    at = np.arange(ids.size)
    return pd.DataFrame(
        {"vertex": ids, "x": at % 6 / 100, "y": at // 6 / 100, "jobs": at * 3 % 11, "area": at / 8}
    )


# Each is searched in hops and by weights, on each graph.
CALLS = """
many(g, s)
many(g, s, limit=most)
many(g, s[:4], limit=limits)
many(g, s, targets=t)
many(g, s, unreached='null')
many(g, s, unreached='cugraph')
many(g, [])
many(g, s, result='predecessors')
many(g, s, result='predecessors', targets=t, limit=most)
many(g, s, result='predecessors', unreached='null')
many(g, s, result='matrix')
many(g, s, result='matrix', targets=t, limit=most)
many(g, s[:4], result='matrix', limit=limits)
many(g, s, result='summary')
many(g, 'all', result='summary', direction='in', limit=most)
many(g, s[:4], result='summary', limit=limits)
many(g, s, result='levels')
many(g, s[:4], result='levels', limit=limits)
many(g, s, result='targets', targets=t)
many(g, s, result='targets', targets=t, limit=most)
many(g, s, result='reachable')
many(g, s, result='reachable', limit=most)
many(g, s, result='nearest')
many(g, s, result='nearest', limit=most)
many(g, s, result='nearest', k=2)
many(g, s, result='k_nearest', k=2, groups=['a', 'b', 'a', 'b', 'b'], limit=most)
many(g, s, result='nearest', k=2, targets=t)
many(g, s, result='nearest', targets=t, limit=most)
many(g, s, result='nearest', k=1, targets=t, groups=[1, 2, 2, 1], limit=most)
many(g, s, result='opportunities', cutoffs=cuts, values=values)
many(g, s, result='opportunities', cutoffs=cuts, values=values, decay='linear:9', direction='in')
many(g, s[:4], result='opportunities', cutoffs=cuts, values=values, source_weights=[1, 2, 0, 5])
many(g, s, result='within', cutoffs=cuts)
many(g, s, result='within', cutoffs=cuts, direction='in')
many(g, s, result='isochrones', cutoffs=cuts)
many(g, s[:4], result='flows', targets=t, limit=most)
many(g, s[:4], result='flows', of='vertices', source_weights=[1, 2, 0, 5], decay='linear:9')
many(g, 'all', result='betweenness', endpoints=True)
many(g, s[:4], result='betweenness', of='edges', targets=t, limit=most)
pairs(g, o, d)
pairs(g, o, d, limit=most)
pairs(g, o, d, result='flows')
pairs(g, o, d, result='flows', of='pairs', through=edges[['src', 'dst']][::3])
paths(g, (o, d), algorithm=algorithm, edges=True, along=edges[['climb', 'toll']])
paths(many(g, s, result='predecessors'), t, graph=g, edges=True)
one(g, s[0])
one(g, s[0], predecessors=False, targets=t, limit=most)
one(g, s[0], unreached='null')
one(g, s[0], unreached='cugraph')
certify(g, one(g, s[0]))
extremes(g, algorithm=algorithm, unconnected='largest')
top_closeness(g, 4, algorithm=algorithm, direction='in')
""".strip().splitlines()

# With one graph each, because the text does not depend on it.
WRONG_CALLS = """
bfs_many(streets, [2])
bfs_many(pages, ['x'])
bfs_many(pages, [1])
bfs_many(streets, ['1'])
bfs_many(streets, [1.5])
bfs_many(streets, None)
bfs_many('streets', [1])
bfs_many(streets, [1], result='distance')
bfs_many(streets, [1], result=3)
bfs_many(streets, [1], result='pairs')
bfs_many(streets, [1], result='paths')
bfs_many(streets, [1], result='extremes')
bfs_many(streets, [1], max_depth=-1)
bfs_many(streets, [1], max_depth=1.5)
bfs_many(streets, [1], max_depth=[1, 2])
bfs_many(streets, [1, 1], max_depth=[1, 2])
bfs_many(streets, {1, 8}, max_depth=[1, 2])
bfs_many(streets, [1], max_depth=[1], result='nearest')
bfs_many(streets, [1], max_depth=1, result='within', cutoffs=[1])
bfs_many(streets, [1], targets=[2])
bfs_many(streets, [1], result='targets')
bfs_many(streets, [1], result='summary', targets=[1])
bfs_many(streets, [1], result='summary', direction='both')
bfs_many(streets, [1], unreached='no')
bfs_many(pages, ['p7'], unreached='cugraph')
bfs_many(streets, [1], result='isochrones', cutoffs=[1], unreached='null')
bfs_many(streets, [1], strategy='fast')
bfs_many(streets, [1], strategy='near_far')
bfs_many(streets, [1], strategy='bit_parallel', knobs={'alpha': 1})
bfs_many(streets, [1], strategy='switch', knobs={'beta': 'x'})
bfs_many(streets, [1], strategy='bit_parallel', memory=1)
bfs_many(streets, [1], stream='frames')
bfs_many(streets, [1], stream=True, result='nearest')
bfs_many(streets, [1], stream='arrow', result='matrix')
bfs_many(streets, [1], progress=3)
bfs_many(streets, [1], cutoffs=[1])
bfs_many(streets, [1], result='within')
bfs_many(streets, [1], result='within', cutoffs=[])
bfs_many(streets, [1], result='within', cutoffs=[2, 1])
bfs_many(streets, [1], result='within', cutoffs=[1.5])
bfs_many(streets, [1], result='within', cutoffs=[1], values=[1])
bfs_many(streets, [1], result='opportunities', cutoffs=[1])
bfs_many(streets, [1], result='opportunities', cutoffs=[1], values=[1, 2])
bfs_many(streets, [1], result='opportunities', cutoffs=[1], values={'a': [1]})
bfs_many(streets, [1], result='opportunities', cutoffs=[1], values=ones, decay='linear')
bfs_many(streets, [1], result='opportunities', cutoffs=[1], values=ones, decay='linear:-1')
bfs_many(streets, [1], result='opportunities', cutoffs=[1], values=ones, source_weights=[1, 2])
bfs_many(streets, [1], source_weights=[1])
bfs_many(streets, [1], k=2)
bfs_many(streets, [1], groups=[1])
bfs_many(streets, [1], result='k_nearest')
bfs_many(streets, [1], result='nearest', k=0)
bfs_many(streets, [1], result='nearest', k=1, groups=[1, 2])
bfs_many(streets, [1], result='nearest', groups=[1])
bfs_many(streets, [], result='nearest')
bfs_many(streets, [1], result='nearest', k=1, targets=[1], groups=[1, 2])
sssp_many(streets, [1], result='levels')
sssp_many(streets, [1], cutoff=-1)
sssp_many(streets, [1], cutoff='1')
sssp_many(streets, [1], cutoff=float('nan'))
sssp_many(bare, [1])
sssp_many(cycle, [1])
sssp_many(cycle, [1], result='summary', direction='in')
sssp(cycle, 1)
sssp_pairs(cycle, [1], [3])
sssp_many(tolls, [100], strategy='near_far')
bfs(streets, [1])
bfs(streets, 1, targets=1)
bfs(streets, 1, max_depth=True)
sssp(bare, 1)
bfs_pairs(streets, [1], [1, 8])
bfs_pairs(streets, [1], [2])
bfs_pairs(streets, [2], [1])
bfs_pairs(streets, 1, 1)
sssp_pairs(streets, [1], [1], cutoff=-2)
paths(streets, [1])
paths(streets, ([1], [2]))
paths(bare, ([1], [2]), edges=True)
paths(bare, ([1], [2]), along={'climb': [1]})
paths(streets, ([1], [1]), along={'climb': [1]})
paths(streets, ([1], [1]), graph=streets)
paths(bfs(streets, 1), [1], along={'climb': [1]})
paths(bfs(streets, 1, predecessors=False), [1])
paths(bfs(streets, 1), [260])
paths(bfs(streets, 1, unreached='null'), [1])
extremes(streets)
extremes(tolls, algorithm='sssp', unconnected='largest')
extremes(bare, algorithm='sssp')
extremes(streets, want='diameter')
extremes(streets, want=['width'])
top_closeness(streets, 0)
top_closeness(pages, 2, algorithm='sssp')
certify(streets, 1)
plan_sssp_many(streets, n_sources=1, result='near')
""".strip().splitlines()

# The graphs that are searched in hops and by weights, and options. Paths are relative to the folder of the graph.
STOPS, PEOPLE = "sources=Path('stops.csv')", "'source_weight': 'people'"
AUTO = "limit=most, batch_size='auto'"
SUMS = "vertices='vertices.csv', cutoffs=cuts"
JOBS = f"""
tolls streets: result='distances', {STOPS}, columns={{'source': 'stop', 'limit': 'most'}}
streets tolls: result='distances', sources=s
pages islands: result='distances', sources=s, limit=most, certify='sample'
islands pages: result='distances', sources=s, unreached='null'
pages islands: result='distances', sources=s, unreached='cugraph'
tolls streets: result='distances', random_sources=4, seed=3, targets=t, where='climb > 40'
islands pages: result='predecessors', sources=s, targets=Path('clinics.csv'), columns={{'target': 'clinic'}}
streets tolls: result='predecessors', sources=s, unreached='null', certify='none'
tolls streets: result='matrix', sources=s
islands pages: result='summary', sources=s, direction='in', limit=most
streets tolls: result='summary', {STOPS}, columns={{'source': 'stop'}}
pages islands: result='summary', all_sources=True, batch_size=20
islands pages: result='levels', sources=s
streets tolls: result='targets', sources=s, targets=t, limit=most
pages islands: result='reachable', sources=s
tolls streets: result='nearest', sources=s, limit=most, batch_size='auto'
streets tolls: result='nearest', nearest_k=2, sources=s, batch_size='auto'
tolls islands: result='nearest', nearest_k=2, sources=s, targets=t
pages islands: result='nearest', nearest_k=1, {STOPS}, {AUTO}, columns={{'source': 'stop', 'group': 'kind'}}
tolls streets: result='opportunities', sources=s, {SUMS}, values=['jobs', 'area']
islands pages: result='opportunities', {STOPS}, {SUMS}, values=['jobs'], columns={{'source': 'stop', {PEOPLE}}}
pages islands: result='opportunities', sources=s, {SUMS}, values=['jobs'], decay='linear:9', direction='in'
tolls streets: result='within', sources=s, cutoffs=cuts, direction='in'
islands pages: result='isochrones', sources=s, vertices='places.csv', cutoffs=cuts, geometry='points'
streets tolls: pairs='trips.csv'
tolls streets: pairs='trips.csv', limit=most, columns={{'origin': 'origin', 'destination': 'destination'}}
islands pages: result='paths', pairs='trips.csv', along=['climb', 'toll']
streets pages: result='flows', pairs='trips.csv', columns={{'volume': 'riders'}}
pages islands: result='flows', pairs='trips.csv', through='named.csv'
islands streets: result='flows', {STOPS}, targets=t, of='vertices', decay='linear:9', columns={{'source': 'stop', {PEOPLE}}}
streets islands: result='extremes', unconnected='largest', batch_size='auto'
pages streets: result='distances', sources=s, hierarchy='yes'
""".strip().splitlines()

WRONG_JOBS = """
sources=[2]
sources=[]
sources=['x']
all_sources=True, sources=[1]
sources=Path('none.csv')
sources=Path('stops.csv')
sources=Path('stops.csv'), columns={'source': 'kinds'}
sources=[1], columns={'source': 'stop'}
sources=[1], columns={'limit': 'most'}
sources=Path('stops.csv'), columns={'source': 'stop', 'limit': 'kind'}
sources=Path('stops.csv'), max_depth=2, columns={'source': 'stop', 'limit': 'most'}
sources=Path('stops.csv'), result='nearest', columns={'source': 'stop', 'limit': 'most'}
sources=[1], algorithm='dfs'
sources=[1], cutoff=1
sources=[1], max_depth=-1
sources=[1], max_depth=1.5
sources=[1], algorithm='sssp', max_depth=1
sources=[1], algorithm='sssp', cutoff=float('nan')
sources=[1], algorithm='sssp', result='levels'
sources=[1], result='distance'
sources=[1], result='targets'
sources=[1], result='summary', targets=[1]
sources=[1], targets=[2]
sources=[1], columns={'from': 'stop'}
sources=[1], targets=Path('clinics.csv'), columns={'target': 'x'}
sources=[1], columns={'target': 'clinic'}
sources=[1], result='matrix', targets=[1]
sources=[1], result='matrix', certify='none', resume=True
sources=[1], direction='in'
sources=[1], result='summary', unreached='null'
sources=[1], unreached='no'
sources=[1], unconnected='largest'
sources=[1], result='extremes'
sources=[1], result='extremes', max_depth=1
result='extremes'
result='extremes', strategy='queue'
result='extremes', unconnected='largest', unreached='null'
sources=[1], nearest_k=2
sources=[1], result='nearest', nearest_k=0
sources=[1], result='nearest', columns={'group': 'kind'}
sources=[1], result='nearest', nearest_k=1, columns={'group': 'kind'}
sources=Path('stops.csv'), result='nearest', nearest_k=1, columns={'source': 'stop', 'group': 'none'}
sources=[1], result='k_nearest'
sources=[1], result='nearest', workers=2
sources=[1], result='nearest', hierarchy='yes'
sources=[1], cutoffs=[1]
sources=[1], result='within'
sources=[1], result='within', cutoffs=[2, 1]
sources=[1], result='within', cutoffs=[1.5]
sources=[1], result='within', cutoffs=[1], max_depth=1
sources=[1], result='within', cutoffs=[1], values=['jobs']
sources=[1], result='opportunities', cutoffs=[1]
sources=[1], result='opportunities', cutoffs=[1], values=['jobs']
sources=[1], result='opportunities', cutoffs=[1], values=['shops'], vertices='vertices.csv'
sources=[1], result='opportunities', cutoffs=[1], values=['jobs'], vertices='vertices.csv', decay='steep:1'
sources=[1], result='opportunities', cutoffs=[1], values=['jobs'], vertices='vertices.csv', columns={'limit': 'most'}
sources=[1], columns={'source_weight': 'people'}
sources=[1], decay='linear:1'
sources=[1], geometry='points'
sources=[1], result='isochrones', cutoffs=[1], geometry='points'
sources=[1], result='isochrones', cutoffs=[1], geometry='lines'
sources=[1], result='pairs'
pairs='none.csv'
pairs='trips.csv', sources=[1]
pairs='trips.csv', result='distances'
pairs='trips.csv', columns={'origin': 'origin'}
pairs='trips.csv', columns={'origin': 'x', 'destination': 'y'}
pairs='trips.csv', result='flows', columns={'volume': 'none'}
pairs='trips.csv', result='flows', targets=[1]
pairs='trips.csv', result='flows', through='trips.csv'
pairs='trips.csv', result='paths', along=['x']
pairs='trips.csv', result='paths', along=['climb', 'climb']
sources=[1], strategy='fast'
sources=[1], strategy='bit_parallel', knobs={'alpha': 1}
sources=[1], strategy='switch', knobs={'beta': 'x'}
sources=[1], engine='cugraph-mg', result='summary'
sources=[1], batch_size=0
sources=[1], workers=0
sources=[1], seed=4
sources=[1], random_sources=2
random_sources=1000
sources=[1], columns={'weight': 'toll'}
sources=[1], algorithm='sssp', columns={'weight': 'x'}
sources=[1], columns={'src': 'x'}
sources=[1], where='climb >'
sources=[1], where='height > 1'
sources=[1], columns={'oneway': 'x'}
sources=[1], directed=False, columns={'oneway': 'toll'}
sources=[1], only_vertices='none.txt'
sources=[1], gpu_memory=1, device='cpu'
sources=[1], resume=True
sources=[1], dashboard_address='x'
sources=[1], hierarchy='maybe'
sources=[1], graph_cache='hdfs://x'
sources=[1], certify='some'
""".strip().splitlines()
