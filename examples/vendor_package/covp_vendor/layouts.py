"""A layout: the generated library as a folder of a vendor's SDK."""

from covp.firmware.layouts.registry import Files
from covp.firmware.project import Project


def vendor_sdk(project: Project) -> Files:
    """The library's files below ``components/``, and a list of its sources."""
    files = {f"components/{project.library.name}/{n}": t for n, t in project.library.files.items()}
    sources = sorted(name for name in files if name.endswith(".c"))
    return {**files, "sources.txt": "\n".join(sources) + "\n"}
