/** Notes of the vault as the app has them: opened at a line, saved, linked to, filtered. */

import { type App, Keymap, MarkdownView, TFile, type WorkspaceLeaf, normalizePath, stripHeadingForLink } from "obsidian";

import type { PanelSettings } from "./settings";

/** The file at a path of the engine, if the app has it too. */
export function noteAt(app: App, path: string): TFile | null {
  return app.vault.getFileByPath(normalizePath(path));
}

/** Open a note at a line (from 1): here, or where the keys that were held say. */
export async function openNote(app: App, path: string, line: number, event: MouseEvent | KeyboardEvent | null, settings: PanelSettings): Promise<boolean> {
  const file = noteAt(app, path);
  if (!file) return false;
  const pane = (event && Keymap.isModEvent(event)) || settings.openIn === "tab";
  const leaf = app.workspace.getLeaf(pane === true ? "tab" : pane);
  const place = line > 0 ? { eState: { line: line - 1 } } : {};
  await leaf.openFile(file, { active: true, ...place });
  // A leaf that showed the file already, or one in reading mode, is moved to the line by this alone.
  if (line > 0) leaf.view.setEphemeralState({ line: line - 1 });
  return true;
}

/** The editor of a note, wherever the focus is; the active one before others. */
export function editorOf(app: App, path: string): MarkdownView | null {
  const recent = app.workspace.getMostRecentLeaf();
  const leaves: WorkspaceLeaf[] = recent ? [recent] : [];
  leaves.push(...app.workspace.getLeavesOfType("markdown"));
  for (const { view } of leaves) {
    if (view instanceof MarkdownView && view.file?.path === path) return view;
  }
  return null;
}

/** Write what is typed but not saved yet: editors save two seconds late, and the engine reads files. */
export async function saveEditors(app: App, paths: readonly string[]): Promise<void> {
  for (const { view } of app.workspace.getLeavesOfType("markdown")) {
    if (view instanceof MarkdownView && view.file && paths.includes(view.file.path)) await view.save();
  }
}

/** A link to a note as the user's settings write links; to a heading if there is one. */
export function linkTo(app: App, target: TFile, from: string, headings: readonly string[] = []): string {
  const last = headings[headings.length - 1];
  const heading = last && last !== target.basename ? stripHeadingForLink(plainHeading(last)).trim() : "";
  return app.fileManager.generateMarkdownLink(target, from, heading ? `#${heading}` : undefined);
}

/** Obsidian names a heading with links in it by the words that are shown. */
export function plainHeading(heading: string): string {
  return heading
    .replace(/!?\[\[(?:[^[\]|]*\|)?([^[\]|]*)\]\]/g, "$1")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1");
}

/** Put a link where the cursor of the note `from` is; false if no editor has it open. */
export function insertLink(app: App, path: string, from: string, headings: readonly string[] = []): boolean {
  const view = editorOf(app, from);
  const target = noteAt(app, path);
  if (!view || !target) return false;
  view.editor.replaceSelection(linkTo(app, target, from, headings));
  return true;
}

/** Whether a note says of itself that it stays out. */
export function isLeftOut(app: App, file: TFile): boolean {
  const says: unknown = app.metadataCache.getFileCache(file)?.frontmatter?.["rag"];
  return says === false || says === "false";
}

/** Whether a note has an id by which others can name it. */
export function hasId(app: App, file: TFile): boolean {
  const properties = app.metadataCache.getFileCache(file)?.frontmatter;
  return Boolean(properties?.["id"] ?? properties?.["uuid"]);
}
