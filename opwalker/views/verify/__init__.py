"""Reference kernels built, run and compared: does what the source documents hold?

Contracts (``contract``) say what an op takes and gives; ``build`` compiles the kernels, ``on_gpu`` and ``on_cpu`` run
them, ``compare`` judges, ``run`` is the whole of it. numpy and torch are imported here and nowhere else.
"""
