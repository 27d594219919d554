#!/usr/bin/env bash
# Demonstrate the job: two generated graphs, BFS and shortest distances from 64 sources each, results as Parquet.
# Then draw the picture of the README.
#
# Needs git, bash and Python 3.11 or newer; no GPU. Creates an environment in .venv. Writes to out/demo, whose earlier
# content it deletes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
cd "$ROOT"
environment

out=out/demo
rm -rf "$out"
mkdir -p "$out"

echo "== Generating two graphs"
"$PYTHON" scripts/make_graphs.py rmat --scale 16 --edge-factor 8 --seed 1 --weights --output "$out/social.parquet"
"$PYTHON" scripts/make_graphs.py lattice --rows 250 --columns 250 --drop 0.1 --seed 1 --weights --output "$out/road.parquet"

for graph in social road; do
    for algorithm in bfs sssp; do
        direction=--directed
        [ "$graph" = social ] || direction=--undirected
        job=(pipelines.batch_sources "$out/$graph.parquet" "$direction" --algorithm "$algorithm" --random-sources 64
            --seed 1 --result predecessors --output "$out/$graph-$algorithm")
        printf '\n== python -m %s\n' "${job[*]}"
        "$PYTHON" -m "${job[@]}" --json >"$out/$graph-$algorithm.json"
    done
done

echo
"$PYTHON" scripts/demo_table.py "$out"/*.json
echo
"$PYTHON" -m scripts.docs.pictures --only isochrones.png --folder "$out"
echo "Travel times from the station of a generated town: $out/isochrones.png"
echo "Finished in $SECONDS s."
