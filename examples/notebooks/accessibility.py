# %% [markdown]
# # Accessibility of a town
#
# Who reaches how many jobs, and which school is nearest. Every junction of a generated town is a source.

# %%
from kepler_traverse import certify, graph_from_edges, sssp, sssp_many
from kepler_traverse.datasets import town
from kepler_traverse.maps import plot

here = town()
graph = graph_from_edges(here.roads)  # weights are seconds by car
graph

# %% [markdown]
# Jobs within 5 and 10 minutes of each junction: one call, one row per junction and cutoff.

# %%
jobs = sssp_many(
    graph,
    "all",
    result="opportunities",
    values=here.junctions[["vertex", "jobs", "residents"]],
    cutoffs=[300, 600],
)
near, far = jobs[jobs["cutoff"] == 300], jobs[jobs["cutoff"] == 600]
near.describe()

# %%
plot(near[["source", "jobs"]], here.junctions, graph=graph, column="jobs").figure.savefig(
    "jobs.png"
)

# %% [markdown]
# The mean of the jobs within reach, weighted with those who live there:

# %%
residents = here.junctions["residents"].to_numpy()
reached = float((near["jobs"].to_numpy() * residents).sum() / residents.sum())
print(f"{reached:.0f} of {here.junctions['jobs'].sum()} jobs within 5 minutes")

# %% [markdown]
# The nearest school of each junction, and the residents of each school's catchment area:

# %%
nearest = sssp_many(graph, here.schools["vertex"], result="nearest")
areas = nearest.merge(here.junctions, on="vertex").groupby("source")[["residents"]].sum()
areas = here.schools.set_index("vertex").join(areas)
areas

# %% [markdown]
# Checks: jobs grow with the time, each resident belongs to one school, and a search is certified.

# %%
assert (far["jobs"].to_numpy() >= near["jobs"].to_numpy()).all()
assert areas["residents"].sum() == residents.sum()
certify(graph, sssp(graph, here.station)).require()
