"""All access to user files: rules, boundary, scan, watch, read, atomic write, trash.

Nothing else in the program opens, lists or changes a file of a vault. Reading never writes.
"""

from obsidian_rag.vault.boundary import check_relative, resolve
from obsidian_rag.vault.files import (
    create_beside,
    files_at,
    find_obstacle,
    make_root,
    name_beside,
    read_bytes,
    rename_file,
    replace_file,
)
from obsidian_rag.vault.new_vault import (
    check_link_mode,
    check_link_texts,
    link_warnings,
    obsidian_vaults,
    resolve_link_root,
)
from obsidian_rag.vault.read import NoteFile, content_hash, read_ignore_file, read_note
from obsidian_rag.vault.readers import WORTH_A_PROCESS, Ahead, read_beside
from obsidian_rag.vault.rules import Rules
from obsidian_rag.vault.scan import (
    FileWalk,
    RootIdentity,
    Scan,
    find_files,
    is_same_file,
    root_identity,
    scan,
    scan_paths,
    walk_files,
)
from obsidian_rag.vault.temporary import sweep, sweep_data_folder, sweep_folder
from obsidian_rag.vault.trash import discard_kept, keep_copy, remove_file, restore_file
from obsidian_rag.vault.vault import Vault, VaultMode, configured_vault
from obsidian_rag.vault.walk import FileEntry, SkippedFile
from obsidian_rag.vault.watcher import Listener, OnChange, Watcher, watch_files
from obsidian_rag.vault.write import replace_note

__all__ = [
    "WORTH_A_PROCESS",
    "Ahead",
    "FileEntry",
    "FileWalk",
    "Listener",
    "NoteFile",
    "OnChange",
    "RootIdentity",
    "Rules",
    "Scan",
    "SkippedFile",
    "Vault",
    "VaultMode",
    "Watcher",
    "check_link_mode",
    "check_link_texts",
    "check_relative",
    "configured_vault",
    "content_hash",
    "create_beside",
    "discard_kept",
    "files_at",
    "find_files",
    "find_obstacle",
    "is_same_file",
    "keep_copy",
    "link_warnings",
    "make_root",
    "name_beside",
    "obsidian_vaults",
    "read_beside",
    "read_bytes",
    "read_ignore_file",
    "read_note",
    "remove_file",
    "rename_file",
    "replace_file",
    "replace_note",
    "resolve",
    "resolve_link_root",
    "restore_file",
    "root_identity",
    "scan",
    "scan_paths",
    "sweep",
    "sweep_data_folder",
    "sweep_folder",
    "walk_files",
    "watch_files",
]
