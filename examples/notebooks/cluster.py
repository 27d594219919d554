# %% [markdown]
# # A run on a cluster, with its dashboard
#
# The job on the workers of a Dask cluster: certified Parquet files, and a page that shows the run. Here workers are
# threads of this process; `Client("tcp://host:8786")` connects to another cluster, whose workers see the same output folder.

# %%
import urllib.request

from distributed import Client, LocalCluster

from kepler_traverse import graph_from_edges
from kepler_traverse.datasets import town
from kepler_traverse.pipelines import run_job

here = town()
graph = graph_from_edges(here.roads)
here_alone = {"host": "127.0.0.1", "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}
cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **here_alone)
client = Client(cluster)
page = client.dashboard_link.replace("/status", "/kepler")
print("this run:", page)

# %% [markdown]
# Distances from every school. Open the page while it runs: sources per second, each worker, phases, failures.

# %%
done = run_job(
    graph,
    output="schools",
    client=client,
    algorithm="sssp",
    sources=here.schools["vertex"],
    batch_size=2,
)
done.n_sources, done.n_rows, done.digest

# %% [markdown]
# The page stays on the scheduler for later runs. The folder has the results, a manifest and a report.

# %%
shown = urllib.request.urlopen(page).read().decode()
names = sorted(path.name for path in done.path.iterdir())
names

# %%
times = done.to_pandas()
times.groupby("source")["distance"].describe()

# %% [markdown]
# A call that was interrupted is finished by the same call with `resume=True`. Of a complete run nothing is computed again.

# %%
again = run_job(
    graph,
    output="schools",
    client=client,
    algorithm="sssp",
    sources=here.schools["vertex"],
    batch_size=2,
    resume=True,
)
client.close()
cluster.close()

# %% [markdown]
# Checks: every school has a row per junction, the digest stayed, and the page was there.

# %%
assert done.n_rows == len(times) == len(here.schools) * len(here.junctions)
assert again.digest == done.digest
assert "<title>kepler" in shown
assert "_SUCCESS" in names
