"""Runs of the job in this process, and what their folders hold."""

import json

from pipelines import verify
from pipelines.batch_sources import main


def manifest_of(folder):
    return json.loads((folder / "_manifest.json").read_text())


def parts_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*"))}


def call(capsys, *argv):
    """Run the command line; return its exit code, stdout and stderr."""
    code = main([str(word) for word in argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def proven(folder, edges, capsys, *more):
    """What verify says about an output: its exit code and its findings."""
    capsys.readouterr()
    code = verify.main([str(word) for word in (folder, edges, "--device", "cpu", "--json", *more)])
    return code, json.loads(capsys.readouterr().out)


class Runs:
    """Makes each run once, and returns its folder; ``command(folder, *case, **way)`` is its command line."""

    def __init__(self, root, command):
        self.command, self._root, self._folders = command, root, {}

    def __call__(self, *case, **way):
        key = (*case, *way.items())
        if key not in self._folders:
            folder = self._folders[key] = self._root / str(len(self._folders))
            assert main(self.command(folder, *case, **way)) == 0
        return self._folders[key]
