"""Exports: a compiled model as a C library, and projects around it."""

from covp.export.library import Library
from covp.export.project import Application, Project
from covp.export.write import export_project, link_project

__all__ = ["Application", "Library", "Project", "export_project", "link_project"]
