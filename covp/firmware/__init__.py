"""Exports: a compiled model as a C library, and projects around it."""

from covp.firmware.library import Library
from covp.firmware.project import Application, Project
from covp.firmware.write import export_project, link_project

__all__ = ["Application", "Library", "Project", "export_project", "link_project"]
