# %% [markdown]
# # Closeness, through NetworkX
#
# A program that calls NetworkX stays as it is: the backend `kepler` answers the call.

# %%
import networkx as nx

from kepler_traverse import graph_from_edges, sssp_many
from kepler_traverse.datasets import town
from kepler_traverse.maps import plot

nx.config.warnings_to_ignore.add("cache")  # NetworkX's warning at each use of a converted graph
here = town()
streets = nx.from_pandas_edgelist(here.roads, "src", "dst", "weight", create_using=nx.DiGraph)
streets.number_of_nodes(), streets.number_of_edges()

# %%
closeness = nx.closeness_centrality(streets, distance="weight", backend="kepler")
len(closeness)

# %% [markdown]
# The same for a whole program: `NETWORKX_BACKEND_PRIORITY=kepler python program.py`, or in a block:

# %%
with nx.config.backend_priority(algos=["kepler"]):
    times = nx.single_source_dijkstra_path_length(streets, here.station)
max(times.values())

# %% [markdown]
# NetworkX counts the distances that lead to a node, so this is `direction="in"` of the library's own call:

# %%
graph = graph_from_edges(here.roads)
summary = sssp_many(graph, "all", result="summary", direction="in")
plot(summary, here.junctions, graph=graph).figure.savefig("closeness.png")

# %% [markdown]
# Checks: NetworkX itself gives the same closeness of a few nodes, and the same times.

# %%
for node in (here.station, 0, 4000):
    assert (
        abs(
            nx.closeness_centrality(streets, u=node, distance="weight", backend="networkx")
            - closeness[node]
        )
        < 1e-12
    )
assert times == nx.single_source_dijkstra_path_length(streets, here.station, backend="networkx")
assert max(abs(summary["closeness"] - summary["source"].map(closeness))) < 1e-12
