"""Random questions to the library and to the job, with random faults; what must come out is computed beside the package.

``python -m scripts.ci.storm --hours 1 --seed 7`` runs it. A case is drawn from the seed and its number alone:

- ``edges`` draws an edge list, and ``questions`` what is asked of it.
- ``oracle`` and ``answers`` compute what must come out. They import nothing of the package.
- ``containers`` hands the edge list over, as a table in memory or as files.
- ``library`` and ``jobs`` ask. ``faults`` cuts files, fills the disk and sends signals.
- ``cases`` chooses a door for each case, and ``processes`` runs them, so that a crash or a hang is a finding, too.
- ``record`` adds finished runs to docs/testing.md.
"""
