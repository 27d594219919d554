# %% [markdown]
# # From cuGraph
#
# A loop of `cugraph.sssp` becomes one call. The cells under "With a GPU" need a GPU with cuDF and cuGraph
# (`pip install 'kepler-traverse[mg]'`) and are left out elsewhere; all others run on a CPU. docs/performance.md has recorded
# times of both libraries on an H200.

# %%
import importlib.util

import numpy as np

from kepler_traverse import cuda, graph_from_edges, sssp, sssp_many
from kepler_traverse.datasets import town

HAS_CUGRAPH = cuda.available() and importlib.util.find_spec("cugraph") is not None
here = town()
edges = here.roads[["src", "dst", "weight"]].astype(
    {"src": "int32", "dst": "int32", "weight": "float32"}
)
schools = here.schools["vertex"].tolist()

# %% [markdown]
# The frame of `cugraph.sssp`: its columns in its order, -1 and the largest float for what is not reached.

# %%
graph = graph_from_edges(edges)
near = sssp(graph, here.station, unreached="cugraph")
near.head()

# %% [markdown]
# All sources in one call. The column `source` comes first.

# %%
many = sssp_many(graph, schools, result="predecessors", unreached="cugraph")
many.groupby("source")["distance"].max()

# %% [markdown]
# ## With a GPU
#
# The same calls, on a table of cuDF: the graph and the frames are in GPU memory. cuGraph's loop gives the same distances.

# %%
if HAS_CUGRAPH:
    import cudf
    import cugraph

    on_gpu = cudf.from_pandas(edges)
    theirs = cugraph.Graph(directed=True)
    theirs.from_cudf_edgelist(on_gpu, source="src", destination="dst", edge_attr="weight")
    ours = sssp_many(graph_from_edges(on_gpu), schools, result="predecessors", unreached="cugraph")
    for school in schools:  # what the one call replaces
        looped = cugraph.sssp(theirs, school).sort_values("vertex")["distance"].to_numpy()
        np.testing.assert_array_equal(looped, ours[ours["source"] == school]["distance"].to_numpy())

# %% [markdown]
# Checks: the one call has the rows of a call per source.

# %%
for school in schools[:3]:
    alone = sssp(graph, school, unreached="cugraph")
    rows = many[many["source"] == school].drop(columns="source").reset_index(drop=True)
    assert rows.equals(alone)
assert near.columns.tolist() == ["distance", "vertex", "predecessor"]
