"""In a wheel: ``python -m pipelines.batch_sources`` is ``python -m kepler_traverse.pipelines.batch_sources``.

It is a module and not a package, so that another project's package ``pipelines`` comes first.
"""

from kepler_traverse.pipelines.one_name import name_also_pipelines

name_also_pipelines()
