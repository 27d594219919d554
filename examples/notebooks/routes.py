# %% [markdown]
# # An OD table, and routes on a map
#
# Travel times between places, from a table of trips, and the streets that the trips take.

# %%
import pandas as pd

from kepler_traverse import graph_from_edges, paths, sssp_many, sssp_pairs
from kepler_traverse.datasets import town
from kepler_traverse.maps import plot

here = town()
# roughly: weights include delays at junctions
roads = here.roads.assign(metres=here.roads["weight"] * here.roads["speed"])
graph = graph_from_edges(roads, src="src", dst="dst", weight="weight", edge_ids=True)
schools = here.schools["vertex"].tolist()

# %% [markdown]
# All pairs of schools, as a square table of seconds:

# %%
table = sssp_many(graph, schools, result="targets", targets=schools)
square = table.pivot(index="source", columns="target", values="distance")
square

# %% [markdown]
# A table of trips, each with its own origin and destination:

# %%
trips = pd.DataFrame(
    {"origin": [here.station, *schools[:3]], "destination": [schools[-1], *schools[4:7]]}
)
trips["seconds"] = sssp_pairs(graph, trips["origin"], trips["destination"])["distance"]
trips

# %% [markdown]
# Their routes: a row per junction, the street that leads to it, and the metres so far.

# %%
routes = paths(
    graph, (trips["origin"], trips["destination"]), edges=True, along=roads[["weight", "metres"]]
)
streets = (
    routes.dropna()
    .merge(roads[["street"]], left_on="edge", right_index=True)
    .sort_values(["pair", "position"])
)
streets.groupby("pair")["street"].unique()

# %%
plot(routes, here.junctions, graph=graph).figure.savefig("routes.png")

# %% [markdown]
# Checks: the weights along each route add up to its time, and no time is zero but from a school to itself.

# %%
assert routes.groupby("pair")["weight"].last().tolist() == trips["seconds"].tolist()
assert (square.to_numpy() == 0).sum() == len(schools)
