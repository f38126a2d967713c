import assert from "node:assert/strict";
import { test } from "node:test";

import { parseEnvelope, parseRelated, parseSearch, parseStatus } from "../src/answers";
import { isEmpty, parseFilter, passes } from "../src/filter";
import { dataFolder, isSameFolder, readAddress } from "../src/presence";
import { ROWS, fault, folderOffers, panelSettings, toControl, toEngine } from "../src/settings";
import { type PanelState, ago, wordsFor } from "../src/states";
import { statusText } from "../src/status_bar_text";

const AROUND = { hasProgram: false, isSandboxed: false, vaultPath: "/my notes/it's" };
const problem = { code: "INDEX_STALE", message: "Old.", suggestion: "Sync." };
const status = parseStatus({ status: "healthy", data: { total_docs: 1234, last_sync: new Date().toISOString() }, error: null });
const STATES: PanelState[] = [
  { kind: "no-note" },
  { kind: "not-a-note" },
  { kind: "no-index" },
  { kind: "indexing", done: 3, total: 1000 },
  { kind: "indexing", done: 0, total: 0 },
  { kind: "excluded", reason: "The folder X is excluded." },
  { kind: "nothing", hiddenLinked: 0, isFiltered: false },
  { kind: "nothing", hiddenLinked: 2, isFiltered: false },
  { kind: "nothing", hiddenLinked: 0, isFiltered: true },
  { kind: "slow" },
  { kind: "problem", problem },
  { kind: "connection", state: { kind: "connecting" } },
  { kind: "connection", state: { kind: "starting" } },
  { kind: "connection", state: { kind: "refused", message: "No vault.", suggestion: "Run init." } },
  { kind: "connection", state: { kind: "other-vault", vaults: ["/other"] } },
  ...(["absent", "refused", "slow", "foreign"] as const).map((reason) => ({ kind: "connection", state: { kind: "off", reason } }) as PanelState),
];

test("every state has a title, a sentence and exactly one action", () => {
  for (const state of STATES) {
    for (const around of [AROUND, { ...AROUND, hasProgram: true }, { ...AROUND, isSandboxed: true }]) {
      const words = wordsFor(state, around);
      assert.ok(words.title && words.text && words.action.label, JSON.stringify(state));
      assert.ok(!words.title.includes("Loading"));
    }
  }
});

test("a command to paste quotes the vault's path for the shell", () => {
  const words = wordsFor({ kind: "connection", state: { kind: "off", reason: "absent" } }, AROUND);
  assert.ok(words.command?.includes("--vault '/my notes/it'\\''s'"));
});

test("the status bar says notes and age, progress, or what is wrong", () => {
  assert.equal(statusText({ kind: "ready", status }).label, "RAG: 1,234 notes | just now");
  assert.equal(statusText({ kind: "ready", status: { ...status, job: { mode: "full", done: 5, total: 10 } } }).label, "RAG: indexing 5/10");
  assert.equal(statusText({ kind: "ready", status: { ...status, health: "unavailable" } }).label, "RAG: not indexed");
  assert.equal(statusText({ kind: "off", reason: "absent" }).label, "RAG: engine off");
  assert.equal(ago(new Date(Date.now() - 7_200_000).toISOString()), "2 hours ago");
  assert.equal(ago("nonsense"), "never");
});

test("answers that are not as expected become empty", () => {
  assert.equal(parseEnvelope("x"), undefined);
  assert.equal(parseEnvelope({ status: 3, data: {} }), undefined);
  const strange = { results: [null, 3, { source_file: 5, score: "x", signals: [], reasons: [1], passages: "p" }] };
  const [note] = parseRelated(strange, "").notes;
  assert.deepEqual(note, { path: "", title: "", score: 0, signals: [], reasons: [], sharedTags: [], tags: [], isLinked: false, passages: [], categories: [] });
  assert.deepEqual(parseSearch({ results: "x" }, ""), { hits: [], isWeak: false });
});

test("notes of other vaults are left out, and an engine that names none has only ours", () => {
  const data = { results: [{ source_file: "a.md", link_id: "ours" }, { source_file: "b.md", link_id: "theirs" }, { source_file: "c.md" }] };
  assert.deepEqual(parseRelated(data, "ours").notes.map((one) => one.path), ["a.md", "c.md"]);
  assert.equal(parseRelated(data, "").notes.length, 3);
});

test("filters by folder, tag with its children, property and word", () => {
  const note = { path: "Projects/Garden/Pond.md", title: "The pond", tags: ["water/deep"] } as never;
  const isIn = (text: string): boolean => passes(parseFilter(text), note, { Status: "Done", areas: ["home", 3] });
  for (const text of ["path:Projects", 'folder:"projects/garden"', "tag:water", "#water/deep", "status=done", "areas=3", "pond", "#water pond"]) {
    assert.ok(isIn(text), text);
  }
  for (const text of ["path:Proj", "tag:wat", "status=raw", "areas=4", "lake", "#water lake"]) assert.ok(!isIn(text), text);
  assert.ok(isEmpty(parseFilter("  ")));
});

test("settings are validated, and reach the engine as it takes them", () => {
  const row = (key: string) => ROWS.find((one) => one.key === key)!;
  assert.equal(fault(row("max_results"), "20"), undefined);
  for (const wrong of ["", "x", "0", "201", "2.5"]) assert.ok(fault(row("max_results"), wrong), wrong);
  assert.equal(fault(row("bm25_weight"), ""), undefined);
  assert.ok(fault(row("bm25_weight"), "2"));
  assert.equal(toEngine(row("bm25_weight"), ""), null);
  assert.equal(toEngine(row("min_score"), "0.25"), 0.25);
  assert.deepEqual(toEngine(row("excluded_folders"), " Templates, /Archive//Old/ ,"), ["Templates", "Archive/Old"]);
  assert.equal(toControl(row("excluded_folders"), ["a", "b"]), "a, b");
  assert.deepEqual(panelSettings({ openIn: "window", hideLinked: "yes" }), { hideLinked: true, openIn: "here", showStatusBar: true });
});

test("folders are offered after each comma", () => {
  assert.deepEqual(folderOffers("Te", ["Templates"]), ["Templates"]);
  assert.deepEqual(folderOffers("Archive, Te", ["Templates", "Old"]), ["Archive, Templates", "Archive, Old"]);
  assert.deepEqual(folderOffers("Archive,", ["Old"]), ["Archive, Old"]);
});

test("every setting of Smart Relations has a row", () => {
  const keys = new Set(ROWS.map((row) => row.key));
  for (const key of ["excluded_folders", "auto_add_ids", "rich_format", "bm25_weight", "tag_weight", "term_weight", "graph_weight", "min_score", "max_results", "ngram_size"]) {
    assert.ok(keys.has(key), key);
  }
});

test("the data folder is the engine's own, and a broken daemon.json is none", () => {
  const told = process.env.OBSIDIAN_RAG_HOME;
  try {
    process.env.OBSIDIAN_RAG_HOME = "/told";
    assert.equal(dataFolder(""), "/told");
    delete process.env.OBSIDIAN_RAG_HOME;
    assert.ok(dataFolder("").endsWith("obsidian-rag"));
  } finally {
    if (told !== undefined) process.env.OBSIDIAN_RAG_HOME = told;
  }
  assert.equal(dataFolder("/x"), "/x");
  assert.equal(readAddress("/nowhere"), undefined);
  assert.ok(isSameFolder("/tmp", "/tmp/../tmp"));
  assert.ok(!isSameFolder("/tmp", "/usr"));
});
