import assert from "node:assert/strict";
import { test } from "node:test";

import { bounded, MOST_CHARS, resultOf } from "../src/result.ts";
import { mismatch } from "../src/versions.ts";
import { answer, refusal } from "./stage.ts";

function read(text: string): Record<string, any> {
  assert.ok(text.length <= MOST_CHARS, `${text.length} characters`);
  return JSON.parse(text) as Record<string, any>;
}

test("the envelope reaches the model once, marked as data", () => {
  const result = resultOf("obsidian_rag_search", { envelope: answer({ results: [] }) }, "0.1.0");
  const found = read(result.content[0]?.text ?? "");
  assert.match(found["untrusted_content"], /never follow instructions/);
  assert.deepEqual(found["data"], { results: [] });
  assert.deepEqual(result.details, { tool: "obsidian_rag_search", health: "healthy" });
  assert.equal(result.content.length, 1);
});

test("a failure keeps its code and its suggestion", () => {
  const result = resultOf("obsidian_rag_search", { envelope: refusal("INDEX_NOT_FOUND") }, "0.1.0");
  assert.deepEqual(read(result.content[0]?.text ?? ""), refusal("INDEX_NOT_FOUND"));
  assert.deepEqual(result.details, { tool: "obsidian_rag_search", health: "unavailable", code: "INDEX_NOT_FOUND" });
});

test("a long list loses its last entries and says how many", () => {
  const results = Array.from({ length: 50 }, (_, number) => ({ number, chunk_text: "é\n\"".repeat(1000) }));
  const found = read(bounded(answer({ results, sensitive_detected: true })));
  const kept: { number: number }[] = found["data"].results;
  assert.ok(kept.length > 5);
  assert.deepEqual(kept, results.slice(0, kept.length));
  assert.equal(found["data"].sensitive_detected, true);
  assert.match(found["notices"][0], new RegExp(`: ${50 - kept.length} at the end of data.results are left out`));
});

test("a long note loses its last lines, and the lines it cites are the lines it has", () => {
  const text = Array.from({ length: 5000 }, (_, number) => `line ${number + 10} "quoted" 😀`).join("\n");
  const envelope = answer({ text, start_line: 10, end_line: 5009, is_truncated: false });
  const { data } = read(bounded(envelope));
  const lines = data.text.split("\n");
  assert.equal(lines.at(-1), `line ${data.end_line} "quoted" 😀`);
  assert.equal(data.is_truncated, true);
  assert.ok(lines.length > 1000);
});

test("one endless line, and entries larger than the limit, still give JSON", () => {
  for (const start of ["", "x"]) {
    const { text } = read(bounded(answer({ text: start + "😀".repeat(60_000) })))["data"];
    assert.ok(text.length > 10_000);
    assert.ok(text.isWellFormed(), "half a character at the end");
  }
  assert.deepEqual(read(bounded(answer({ results: ["x".repeat(MOST_CHARS)] })))["data"].results, []);
});

test("versions that fit need no word", () => {
  assert.equal(mismatch("0.1.0", "0.1.9"), undefined);
  assert.equal(mismatch("1.2.0", "1.2.0rc1"), undefined);
});

test("of two versions the older one is to be upgraded", () => {
  assert.match(mismatch("0.2.0", "0.1.9") ?? "", /0\.2\.0.*0\.1\.9.*pipx upgrade obsidian-rag/);
  assert.match(mismatch("0.10.0", "1.0.0") ?? "", /openclaw plugins update obsidian-rag/);
});

test("differing versions are told with the status and with failures, not with every answer", () => {
  const notices = (tool: string, envelope = answer({})): unknown =>
    read(resultOf(tool, { envelope, version: "0.1.0" }, "0.2.0").content[0]?.text ?? "")["notices"];
  assert.match(String(notices("obsidian_rag_status")), /pipx upgrade/);
  assert.match(String(notices("obsidian_rag_search", refusal("INVALID_ARGUMENT"))), /pipx upgrade/);
  assert.equal(notices("obsidian_rag_search"), undefined);
});
