#!/usr/bin/env bash
# pandana's own tests, with networks of `kepler_traverse.pandana`: see replace_pandana.py.
#
# pandana's package has no tests, so they are fetched at one commit into out/pandana; $PANDANA is a folder that has them already.
# Their data were written by an older pandas; pandana converts a copy.
set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
PYTHON=${PYTHON:-$ROOT/.venv/bin/python}
COMMIT=9bcebd63848b75b35b2196fc1aacfce24f180bbc
FOLDER=$ROOT/out/pandana
if [ -n "${PANDANA:-}" ]; then
    mkdir -p "$FOLDER" && cp -r "$PANDANA/tests" "$FOLDER"
elif [ ! -d "$FOLDER/tests" ]; then
    git init --quiet "$FOLDER"
    git -C "$FOLDER" fetch --quiet --depth 1 https://github.com/UDST/pandana "$COMMIT"
    git -C "$FOLDER" checkout --quiet FETCH_HEAD
fi
"$PYTHON" -c 'import sys; from pandana.loaders.pandash5 import migrate_legacy_hdf; migrate_legacy_hdf(sys.argv[1])' \
    "$FOLDER/tests/osm_sample.h5"

export PYTHONPATH=$ROOT${PYTHONPATH:+:$PYTHONPATH}
exec "$PYTHON" -m pytest -q -c /dev/null --rootdir "$FOLDER" -p no:cacheprovider -p scripts.conformance.replace_pandana -rfE \
    "$FOLDER/tests/test_pandana.py" "$FOLDER/tests/test_pandash5.py"
