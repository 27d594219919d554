"""Batches and manifests of fictitious runs, and the text of a page."""

import html.parser
import random

HOSTILE = '</script><script>document.title = "taken"</script><b>&amp;'


def batch(part, worker="127.0.0.1:1", started=100.0, seconds=2.0, sources=4, **others):
    phases = {
        "load": 0.0,
        "traverse": 0.5 * seconds,
        "certify": 0.3 * seconds,
        "write": 0.2 * seconds,
    }
    same = {
        "rows": 10 * sources,
        "bytes": 100,
        "edges": 50 * sources,
        "slowest": [part, seconds / 4],
        "phases": phases,
    }
    span = {"started": started, "ended": started + seconds}
    return {"part": part, "worker": worker, "sources": sources, **same, **span} | others


def made_up(n_parts, n_workers=3, hours=1.0, **others):
    """Return a manifest of a fictitious run."""
    rng = random.Random(n_parts)
    parts = []
    for i in range(n_parts):
        started = 1e9 + 3600 * hours * i / max(n_parts, n_workers)
        entry = batch(i, f"tcp://10.0.0.{i % n_workers}:4000", started, rng.uniform(0.5, 9.0))
        entry |= {
            "file": f"part-{i:06d}.parquet",
            "sources": list(range(4 * i, 4 * i + 4)),
            "sha256": "0" * 64,
        }
        entry |= {"seconds": entry["ended"] - entry["started"], "rounds": 9, "checksum": "0" * 16}
        parts.append(entry | {"distances": {"width": 1.0, "first": 0, "counts": [4, 12, 20, 4]}})
    graph = {
        "fingerprint": "ab" * 32,
        "vertices": 10,
        "stored_edges": 50,
        "directed": False,
        "built": {"rows": 25},
    }
    manifest = {
        **{"result": "distances", "means": "rows"},
        **{
            "status": "done",
            "algorithm": "bfs",
            "strategy": "queue",
            "device": "cpu",
            "workers": n_workers,
        },
        **{
            "sources": 4 * n_parts,
            "duplicate_sources": 0,
            "batches": n_parts,
            "digest": "1-2",
            "fingerprint": "cd" * 32,
        },
        **{"parts": parts, "tables": [], "failed": [], "retried": []},
        **{"graph": graph, "seconds": {"read": 1.5, "traverse": 3600.0}},
        **{
            "versions": {"python": "3"},
            "settings": {"edges": ["e.csv"], "output": "out", "certify": "all"},
            "memory": {},
        },
    }
    return manifest | others


class Text(html.parser.HTMLParser):
    """The text of a page outside of scripts and plots, tag by tag, and every attribute."""

    def __init__(self, source):
        super().__init__()
        self.words = []
        self.attributes = []
        self._skipping = False
        self._is_drawn = False
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self._skipping = tag in ("script", "style")
        self._is_drawn = self._is_drawn or tag == "svg"
        self.attributes += [(tag, *attribute) for attribute in attributes]

    def handle_endtag(self, tag):
        self._skipping = False
        self._is_drawn = self._is_drawn and tag != "svg"

    def handle_data(self, data):
        if not self._skipping and not self._is_drawn and data.strip():
            self.words.append(data.strip())

    def after(self, word):
        return self.words[self.words.index(word) + 1]
