"""The only door to user files: rules, boundary, scan, read, atomic write.

Nothing else in the program opens, lists or changes a file of a vault. Reading never writes.
"""

from obsidian_rag.vault.boundary import check_relative, open_inside, relative_to_root, resolve
from obsidian_rag.vault.discover import obsidian_vaults
from obsidian_rag.vault.folders import Folders, is_below, list_folders
from obsidian_rag.vault.read import NoteFile, content_hash, read_note
from obsidian_rag.vault.rules import Rules
from obsidian_rag.vault.scan import FileEntry, Scan, SkippedFile, scan, scan_paths
from obsidian_rag.vault.write import replace_note

__all__ = [
    "FileEntry",
    "Folders",
    "NoteFile",
    "Rules",
    "Scan",
    "SkippedFile",
    "check_relative",
    "content_hash",
    "is_below",
    "list_folders",
    "obsidian_vaults",
    "open_inside",
    "read_note",
    "relative_to_root",
    "replace_note",
    "resolve",
    "scan",
    "scan_paths",
]
