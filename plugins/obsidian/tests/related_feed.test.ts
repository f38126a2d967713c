import assert from "node:assert/strict";
import { test } from "node:test";

import { Refused } from "../src/answers";
import { CALM_MS, RelatedFeed, stateOf } from "../src/related_feed";
import { Unreachable } from "../src/transport";
import { until } from "./stage";

const answer = { answer: { notes: [], hiddenLinked: 0, compared: 1 }, isByText: false };

function feed(ask: (path: string, signal: AbortSignal) => Promise<typeof answer>) {
  const shown: string[] = [];
  const asked: string[] = [];
  const made = new RelatedFeed(
    (path, signal) => {
      asked.push(path);
      return ask(path, signal);
    },
    { waiting: (path) => shown.push(`wait ${path}`), found: (view) => shown.push(view.path), state: (_path, state) => shown.push(state.kind) },
  );
  return { made, shown, asked };
}

test("the first switch is asked at once, quick ones after it only when they end", async () => {
  const { made, shown, asked } = feed(async () => answer);
  made.follow("a");
  assert.deepEqual(asked, ["a"]);
  for (const path of ["b", "c", "d", "e"]) made.follow(path);
  assert.deepEqual(asked, ["a"]);
  await until(() => shown.includes("e"));
  assert.deepEqual(asked, ["a", "e"]);
  assert.ok(!shown.includes("a"));
  made.stop();
});

test("a late answer is never shown under another note", async () => {
  const waiting = new Map<string, () => void>();
  const { made, shown } = feed((path) => new Promise((done) => waiting.set(path, () => done(answer))));
  made.follow("slow");
  await new Promise((done) => setTimeout(done, CALM_MS + 10));
  made.follow("quick");
  await until(() => waiting.has("quick"));
  waiting.get("quick")?.();
  await until(() => shown.includes("quick"));
  waiting.get("slow")?.();
  await new Promise((done) => setTimeout(done, 10));
  assert.ok(!shown.includes("slow"));
  made.stop();
});

test("a note that was shown before is shown at once, until something was indexed", async () => {
  const { made, shown, asked } = feed(async () => answer);
  made.follow("a");
  await until(() => shown.includes("a"));
  made.follow(null);
  made.follow("a");
  assert.deepEqual(asked, ["a"]);
  made.refresh();
  await until(() => asked.length === 2);
  made.stop();
});

test("a question that is not wanted any more is cancelled", async () => {
  let signal: AbortSignal | undefined;
  const { made } = feed((_path, given) => {
    signal = given;
    return new Promise(() => undefined);
  });
  made.follow("a");
  made.follow(null);
  assert.equal(signal?.aborted, true);
});

test("the cache is bounded", async () => {
  const { made, shown } = feed(async () => answer);
  for (let number = 0; number < 70; number++) {
    made.follow(`note ${number}`);
    Object.assign(made, { switchedAt: -Infinity });
    await until(() => shown.includes(`note ${number}`));
  }
  assert.ok((made as unknown as { kept: Map<string, unknown> }).kept.size <= 60);
  made.stop();
});

test("every failure becomes a state with words", () => {
  assert.equal(stateOf(new Unreachable("slow")).kind, "slow");
  assert.equal(stateOf(new Unreachable("refused")).kind, "connection");
  assert.equal(stateOf(new Refused({ code: "INDEX_NOT_FOUND", message: "", suggestion: "" })).kind, "no-index");
  assert.equal(stateOf(new Error("x")).kind, "problem");
});
