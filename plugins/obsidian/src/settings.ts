/**
 * One table of all settings. Those of the panel live in the vault's data.json, the engine's in its own config file,
 * and the two places of this machine in the app's storage for this machine: none of them is secret.
 */

import { normalizePath } from "obsidian";

export interface PanelSettings {
  hideLinked: boolean;
  openIn: "here" | "tab";
  showStatusBar: boolean;
}

export interface MachineSettings {
  dataFolder: string;
  program: string;
}

export const PANEL_DEFAULTS: PanelSettings = { hideLinked: true, openIn: "here", showStatusBar: true };
export const MACHINE_DEFAULTS: MachineSettings = { dataFolder: "", program: "" };

export type Keeper = "panel" | "machine" | "engine";
export type Control =
  | { type: "toggle" }
  | { type: "text"; placeholder?: string }
  | { type: "folders" }
  | { type: "number"; min: number; max: number; step: number; isWhole?: boolean; isOptional?: boolean }
  | { type: "choice"; options: Record<string, string> };

export interface Row {
  key: string;
  keeper: Keeper;
  group: "Panel" | "Related notes" | "Weights" | "Connection";
  name: string;
  desc: string;
  control: Control;
  fallback: string | number | boolean | null;
}

const WEIGHT = { type: "number", min: 0, max: 1, step: 0.05, isOptional: true } as const;

function weight(key: string, name: string, desc: string): Row {
  return { key, keeper: "engine", group: "Weights", name, desc: `${desc} Leave empty for the recommended value.`, control: WEIGHT, fallback: null };
}

export const ROWS: readonly Row[] = [
  { key: "hideLinked", keeper: "panel", group: "Panel", name: "Hide linked notes", desc: "Leave out notes that are linked with this one.", control: { type: "toggle" }, fallback: true },
  { key: "openIn", keeper: "panel", group: "Panel", name: "A click opens", desc: "Ctrl, cmd or middle click always opens a new tab.", control: { type: "choice", options: { here: "In the same tab", tab: "In a new tab" } }, fallback: "here" },
  { key: "showStatusBar", keeper: "panel", group: "Panel", name: "Status bar", desc: "Show health and progress at the bottom.", control: { type: "toggle" }, fallback: true },
  { key: "max_results", keeper: "engine", group: "Related notes", name: "Max related notes", desc: "Show at most this many notes.", control: { type: "number", min: 1, max: 200, step: 1, isWhole: true }, fallback: 20 },
  { key: "min_score", keeper: "engine", group: "Related notes", name: "Min similarity threshold", desc: "Lower combined scores are not shown.", control: { type: "number", min: 0, max: 1, step: 0.05 }, fallback: 0.1 },
  { key: "excluded_folders", keeper: "engine", group: "Related notes", name: "Excluded folders", desc: "Folders whose notes are not related, separated by commas.", control: { type: "folders" }, fallback: "" },
  { key: "auto_add_ids", keeper: "engine", group: "Related notes", name: "Add ids automatically", desc: "Write an ID into notes that have none. This changes your files.", control: { type: "toggle" }, fallback: false },
  { key: "rich_format", keeper: "engine", group: "Related notes", name: "Rich related format", desc: "Write ID, rel and auto into the related field, not ids only.", control: { type: "toggle" }, fallback: true },
  { key: "ngram_size", keeper: "engine", group: "Related notes", name: "N-gram size", desc: "Letters per piece when titles are compared.", control: { type: "number", min: 2, max: 5, step: 1, isWhole: true }, fallback: 3 },
  weight("bm25_weight", "Words (BM25)", "The text's words."),
  weight("tag_weight", "Tags (Jaccard)", "Tags in common."),
  weight("term_weight", "Term overlap", "The common vocabulary."),
  weight("graph_weight", "Graph proximity", "Closeness by relations and links."),
  weight("cosine_weight", "Rare words", "Rare words in common."),
  weight("neighbour_weight", "Neighbours", "Ties to the same notes."),
  weight("title_weight", "Titles", "Titles and aliases that the other note names."),
  weight("vector_weight", "Meaning", "Similarity in meaning."),
  { key: "dataFolder", keeper: "machine", group: "Connection", name: "Data folder", desc: "Where the engine keeps its data, if not in the usual place. Only for this machine.", control: { type: "text", placeholder: "~/.obsidian-rag" }, fallback: "" },
  { key: "program", keeper: "machine", group: "Connection", name: "Program", desc: "Full path of obsidian-rag, if it is not found. Only for this machine.", control: { type: "text", placeholder: "~/.local/bin/obsidian-rag" }, fallback: "" },
];

/** What is wrong with a value, in a sentence; undefined if nothing is. */
export function fault(row: Row, value: unknown): string | undefined {
  const { control } = row;
  if (control.type !== "number") return undefined;
  if (control.isOptional && (value === null || value === "")) return undefined;
  const number = typeof value === "string" && value.trim() ? Number(value) : value;
  if (typeof number !== "number" || Number.isNaN(number)) return "Enter a number.";
  if (number < control.min || number > control.max) return `Enter a number from ${control.min} to ${control.max}.`;
  return control.isWhole && !Number.isInteger(number) ? "Enter a whole number." : undefined;
}

/** A value as the engine takes it; call `fault` first. */
export function toEngine(row: Row, value: unknown): unknown {
  if (row.control.type === "folders") {
    const names = (typeof value === "string" ? value : "").split(",").map((name) => name.trim());
    return names.filter(Boolean).map((name) => normalizePath(name));
  }
  if (row.control.type !== "number") return value;
  return value === "" || value === null ? null : Number(value);
}

/** What completes the last folder of a list: the folders before it stay, because a chosen value replaces the text. */
export function folderOffers(typed: string, folders: string[]): string[] {
  const before = typed.slice(0, typed.lastIndexOf(",") + 1);
  return folders.map((folder) => (before ? `${before} ${folder}` : folder));
}

/** A value as a control shows it. */
export function toControl(row: Row, value: unknown): string | number | boolean {
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") return value;
  return row.fallback ?? "";
}

/** Settings of the panel from data.json, whatever stands there. */
export function panelSettings(data: unknown): PanelSettings {
  const found = (typeof data === "object" && data !== null ? data : {}) as Partial<Record<keyof PanelSettings, unknown>>;
  return {
    hideLinked: typeof found.hideLinked === "boolean" ? found.hideLinked : PANEL_DEFAULTS.hideLinked,
    openIn: found.openIn === "tab" ? "tab" : "here",
    showStatusBar: typeof found.showStatusBar === "boolean" ? found.showStatusBar : PANEL_DEFAULTS.showStatusBar,
  };
}
