/** Every state without results, in words, each with the one action that helps. */

import type { Problem } from "./answers";
import type { ConnectionState } from "./connection";

export type PanelState =
  | { kind: "connection"; state: ConnectionState }
  | { kind: "no-note" }
  | { kind: "not-a-note" }
  | { kind: "no-index" }
  | { kind: "indexing"; done: number; total: number }
  | { kind: "excluded"; reason: string }
  | { kind: "nothing"; hiddenLinked: number; isFiltered: boolean }
  | { kind: "slow" }
  | { kind: "problem"; problem: Problem };

export type ActionId = "start" | "copy-install" | "copy-link" | "connect" | "index" | "details" | "search" | "clear-filter" | "show-linked" | "again" | "settings";

export interface Words {
  title: string;
  text: string;
  action: { id: ActionId; label: string };
  /** A command to type, shown as such. */
  command?: string;
}

export interface Surroundings {
  hasProgram: boolean;
  isSandboxed: boolean;
  vaultPath: string;
}

const INSTALL = "pipx install ./obsidian-rag";
const AGAIN = { id: "again", label: "Try again" } as const;

export function wordsFor(state: PanelState, around: Surroundings): Words {
  switch (state.kind) {
    case "connection":
      return connectionWords(state.state, around);
    case "no-note":
      return { title: "No note is open", text: "Open a note to see what belongs to it.", action: { id: "search", label: "Search your notes" } };
    case "not-a-note":
      return { title: "This file is not a note", text: "Only notes and canvases have related notes.", action: { id: "search", label: "Search your notes" } };
    case "no-index":
      return { title: "Nothing is indexed yet", text: "The engine has to read your notes once.", action: { id: "index", label: "Index vault" } };
    case "indexing":
      return {
        title: "Indexing your notes",
        text: state.total ? `${count(state.done)} of ${count(state.total)} notes. Results appear automatically.` : "Counting them. Results appear automatically.",
        action: { id: "details", label: "Show details" },
      };
    case "excluded":
      return { title: "This note is left out", text: state.reason, action: { id: "settings", label: "Open settings" } };
    case "nothing":
      return nothingWords(state);
    case "slow":
      return { title: "The engine is busy", text: "It has not answered in time.", action: AGAIN };
    case "problem":
      return { title: state.problem.message || "Something went wrong", text: problemText(state.problem), action: AGAIN };
  }
}

function nothingWords(state: { hiddenLinked: number; isFiltered: boolean }): Words {
  const title = "No related notes";
  if (state.isFiltered) return { title, text: "None matches the filter.", action: { id: "clear-filter", label: "Clear filter" } };
  if (state.hiddenLinked) {
    const many = state.hiddenLinked === 1 ? "1 linked note is" : `${count(state.hiddenLinked)} linked notes are`;
    return { title, text: `${many} hidden.`, action: { id: "show-linked", label: "Show linked notes" } };
  }
  return { title, text: "Nothing else in your vault is close to this note.", action: { id: "search", label: "Search your notes" } };
}

function connectionWords(state: ConnectionState, around: Surroundings): Words {
  switch (state.kind) {
    case "ready":
    case "connecting":
      return { title: "Looking for the engine", text: "This takes a moment.", action: { id: "connect", label: "Look again" } };
    case "starting":
      return { title: "The engine is starting", text: "This takes a few seconds.", action: { id: "connect", label: "Look again" } };
    case "refused":
      return { title: state.message, text: state.suggestion, action: { id: "connect", label: "Look again" } };
    case "other-vault":
      return {
        title: "The engine does not know this vault",
        text: `It serves ${state.vaults.join(", ") || "no vault"}. Add this one in a terminal:`,
        command: `obsidian-rag link add ${quoted(around.vaultPath)}`,
        action: { id: "copy-link", label: "Copy command" },
      };
    case "off":
      return offWords(state.reason, around);
  }
}

function offWords(reason: "absent" | "refused" | "slow" | "foreign", around: Surroundings): Words {
  if (reason === "slow") return { title: "The engine does not answer", text: "It may be very busy.", action: { id: "connect", label: "Look again" } };
  if (around.hasProgram) {
    return { title: "The engine is not running", text: "obsidian-rag answers from your notes, on this machine only.", action: { id: "start", label: "Start engine" } };
  }
  const why = around.isSandboxed
    ? "Obsidian runs in a sandbox and cannot see programs of this machine. Start the engine in a terminal:"
    : "The program obsidian-rag was not found. Install it in a terminal, or set its path in the settings:";
  return {
    title: "The engine is not running",
    text: why,
    command: around.isSandboxed ? "obsidian-rag serve --detach" : `${INSTALL} && obsidian-rag init --vault ${quoted(around.vaultPath)} && obsidian-rag serve --detach`,
    action: { id: "copy-install", label: "Copy command" },
  };
}

function problemText(problem: Problem): string {
  return [problem.suggestion, problem.code && `(${problem.code})`].filter(Boolean).join(" ");
}

/** A path as one word of a shell. */
function quoted(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** When something was, for people. */
export function ago(time: string, now = Date.now()): string {
  const at = Date.parse(time);
  if (Number.isNaN(at)) return "never";
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 60) return "just now";
  for (const [size, name] of [[86_400, "day"], [3600, "hour"], [60, "minute"]] as const) {
    const many = Math.floor(seconds / size);
    if (many) return `${many} ${name}${many > 1 ? "s" : ""} ago`;
  }
  return "just now";
}

/** The state in a word, and what healthy does not mean. */
export function healthWord(health: string, leftOut = 0): string {
  const word = { healthy: "Healthy", degraded: "Degraded", unavailable: "Unavailable" }[health] ?? health;
  if (!leftOut) return word;
  return `${word}${health === "healthy" ? ": all that can be read" : ""}; ${count(leftOut)} ${leftOut === 1 ? "file" : "files"} left out`;
}
