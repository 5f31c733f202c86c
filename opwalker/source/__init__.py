"""Where text comes from: a folder, an archive or a released package in, ``SourceFile`` out.

Reading order: ``opened`` (what the user named becomes a tree on disk), ``discover`` (which files of it are read),
``read`` (one file's text). Below them: ``fetch`` and ``index_settings`` (released packages), ``archive``, ``members``
and ``streams`` (unpacking), ``identity`` and ``versions`` (names), ``git`` (ignore rules), ``languages``, ``cache``.
Nothing of a source is ever imported, built or run here.
"""
