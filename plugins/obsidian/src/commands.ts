/** The commands of the palette; none has a key of its own. */

import { MarkdownView, type Plugin } from "obsidian";

import type { Companion } from "./companion";
import { DetailsModal, startIndex } from "./details_modal";
import { addAllIds, addId, checkIds } from "./ids";
import { SearchModal } from "./search_modal";
import { suggestRelations } from "./suggest_modal";

export function addCommands(plugin: Plugin & Companion, showPanel: () => Promise<void>): void {
  plugin.addCommand({ id: "related", name: "Find related notes", callback: () => void showPanel() });
  plugin.addCommand({ id: "search", name: "Search notes", callback: () => openSearch(plugin) });
  const forNote = (id: string, name: string, act: (path: string) => void): void => {
    plugin.addCommand({
      id,
      name,
      checkCallback: (isChecking) => {
        const file = plugin.app.workspace.getActiveFile();
        if (file?.extension !== "md") return false;
        if (!isChecking) act(file.path);
        return true;
      },
    });
  };
  forNote("suggest-relations", "Suggest relations for current note", (path) => void suggestRelations(plugin, path));
  forNote("add-id", "Add ID to current note", (path) => void addId(plugin, path));
  plugin.addCommand({ id: "add-ids", name: "Add ids to all notes", callback: () => void addAllIds(plugin) });
  plugin.addCommand({ id: "check-ids", name: "Check duplicate ids", callback: () => void checkIds(plugin) });
  plugin.addCommand({ id: "reindex", name: "Reindex vault", callback: () => void startIndex(plugin, "reindex") });
  plugin.addCommand({ id: "details", name: "Show engine status", callback: () => new DetailsModal(plugin).open() });
}

/** Search; a link goes into the note that was being written. */
export function openSearch(companion: Companion): void {
  const view = companion.app.workspace.getActiveViewOfType(MarkdownView);
  const from = view?.file?.path ?? companion.app.workspace.getActiveFile()?.path ?? "";
  new SearchModal(companion, from).open();
}
