# %% [markdown]
# # A real city: Porto
#
# From a file of OpenStreetMap to travel times between a thousand places, the nearest petrol stations and the busiest
# streets. `OSM_FILE` names the file: an extract of any town (https://extract.bbbike.org) will do. The one of Porto that the
# pictures show has streets and petrol stations of June 2015, and no schools: in a full extract `amenity` may be `"school"`.
#
# It needs `pip install 'kepler-traverse[osm,plot]'`. Data: © OpenStreetMap contributors, ODbL 1.0.

# %%
import os
import time

import numpy as np
import osmium
import pandas as pd

from kepler_traverse import certify, convert, snap, sssp, sssp_many
from kepler_traverse.maps import plot

FILE = os.environ.get("OSM_FILE", "porto_portugal.osm.pbf")
AMENITY, WHAT = "fuel", "petrol station"
CENTRE = {"x": [-8.6110], "y": [41.1466]}  # Praça da Liberdade
HALF = 0.05, 0.0376  # degrees from the centre to the edges of the pictures: 4.2 km each
MINUTE = 60_000  # milliseconds, which weights count
seconds = {}


def measured(step, call):
    """Call a function and keep the seconds that it took."""
    begin = time.perf_counter()
    result = call()
    seconds[step] = time.perf_counter() - begin
    return result


# %% [markdown]
# Streets by car: a graph with travel times in whole milliseconds, and a table of junctions with longitudes and latitudes.
# A hierarchy makes searches from many places fast; it is built once.

# %%
here = measured("read the file", lambda: convert.from_osm(FILE, mode="drive"))
graph = here.graph
measured("build the hierarchy", graph.hierarchy)
graph

# %% [markdown]
# A thousand places in the middle of the town, each at the nearest junction that can be left and reached again. Travel times
# between all of them, in minutes:

# %%
random = np.random.default_rng(2015)
places = pd.DataFrame(
    {
        axis: CENTRE[axis][0] + half * random.uniform(-1, 1, 20_000)
        for axis, half in zip("xy", HALF, strict=True)
    }
)
near = measured(
    "snap 20,000 points",
    lambda: snap(graph, places, here.junctions, coordinates="degrees", cutoff=100),
)
homes = near["vertex"].dropna().unique()[:1000]
times = measured(
    "1,000 x 1,000 travel times",
    lambda: sssp_many(graph, homes, result="matrix", targets=homes),
)
pd.Series(np.asarray(times).ravel() / MINUTE).describe().round(1)


# %% [markdown]
# Where one gets from the middle of the town in 3, 6, ... 15 minutes, without traffic and waiting:


# %%
def draw(frame, name, points=None, **said):
    """Save a map of the middle of the town, with some points."""
    axes = plot(frame, here.junctions, graph=graph, **said)
    if points is not None:
        axes.scatter(points["x"], points["y"], s=80, c="white", edgecolors="black", zorder=5)
    for limit, axis, half in zip((axes.set_xlim, axes.set_ylim), "xy", HALF, strict=True):
        limit(CENTRE[axis][0] - half, CENTRE[axis][0] + half)
    axes.figure.supxlabel("© OpenStreetMap contributors", fontsize="small", color="dimgrey")
    axes.figure.savefig(name)


centre = snap(graph, CENTRE, here.junctions, coordinates="degrees")["vertex"]
bands = measured(
    "isochrones",
    lambda: sssp_many(
        graph, centre, result="isochrones", cutoffs=[3 * MINUTE * i for i in range(1, 6)]
    ),
)
draw(
    bands,
    "porto-isochrones.png",
    unit="minutes",
    per_unit=MINUTE,
    title="Porto: by car from Praça da Liberdade",
)

# %% [markdown]
# The nearest of all places of a kind in the file, which are no junctions either. `nearest` goes from a station to the
# junctions; in the reversed graph that is the way to the station:

# %%
nodes = osmium.FileProcessor(FILE, osmium.osm.NODE).with_filter(osmium.filter.KeyFilter("amenity"))
stations = pd.DataFrame(
    [(node.lon, node.lat) for node in nodes if node.tags["amenity"] == AMENITY], columns=["x", "y"]
)
stations["vertex"] = snap(graph, stations, here.junctions, coordinates="degrees", cutoff=200)[
    "vertex"
]
stations = stations.dropna()
nearest = measured(
    f"the nearest {WHAT} of each junction",
    lambda: sssp_many(graph.reverse, stations["vertex"].unique(), result="nearest"),
)
draw(
    nearest,
    "porto-nearest.png",
    stations,
    title=f"Porto: the nearest {WHAT}",
)

# %% [markdown]
# The busiest streets, if one car drives from each of the thousand places to each other one:

# %%
flows = measured(
    "the busiest streets of 999,000 trips",
    lambda: sssp_many(graph, homes, result="flows", targets=homes),
)
draw(
    flows,
    "porto-flows.png",
    unit="thousand cars",
    per_unit=1000,
    title="Porto: the busiest streets",
)
busiest = flows.merge(here.roads, on=["src", "dst"])
busiest = busiest.groupby("street")["volume"].max().drop("", errors="ignore")
busiest.nlargest(10)

# %% [markdown]
# Checks: each place reaches each other one, the matrix has what single searches say, and a search is certified.

# %%
for step, took in seconds.items():
    print(f"{took:8.3f} s  {step}")
one = sssp(graph, homes[0])
assert (np.asarray(times) >= 0).all()
assert (np.asarray(times).diagonal() == 0).all()
row = one.set_index("vertex")["distance"].reindex(homes).to_numpy()
assert (np.asarray(times)[0] == row).all()
certify(graph, one).require()
assert set(nearest["source"]) <= set(stations["vertex"])
