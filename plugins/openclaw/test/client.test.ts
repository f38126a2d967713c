import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";

import { post } from "../src/client.ts";
import { type Presence, readPresence } from "../src/presence.ts";
import { answer, type Stage, stage } from "./stage.ts";

const PATIENT = { timeoutMs: 10_000 };

function announced(made: Stage): Presence {
  made.daemon.announce();
  const found = readPresence(made.folder);
  assert.ok(found);
  return found;
}

test("a question carries the token and the arguments", async (context) => {
  const made = await stage(context);
  made.daemon.reply = () => answer({ fine: true });
  const outcome = await post(announced(made), "/tools/x", { query: "ü" }, PATIENT);
  assert.deepEqual(outcome, { kind: "answer", envelope: answer({ fine: true }) });
  assert.deepEqual(made.daemon.asked, [{ path: "/tools/x", token: "secret", body: { query: "ü" } }]);
});

test("an old token, a closed port and another program's answer mean that the daemon is gone", async (context) => {
  const made = await stage(context);
  const presence = announced(made);
  assert.deepEqual(await post({ ...presence, token: "old" }, "/x", {}, PATIENT), { kind: "gone" });
  for (const text of ["<html>", "{}", '{"status": "ok"}', "[]"]) {
    made.daemon.reply = () => text;
    assert.deepEqual(await post(presence, "/x", {}, PATIENT), { kind: "gone" });
  }
  await made.daemon.close();
  assert.deepEqual(await post(presence, "/x", {}, PATIENT), { kind: "gone" });
});

test("a daemon that does not answer is slow, not gone", async (context) => {
  const made = await stage(context);
  made.daemon.reply = () => undefined;
  assert.deepEqual(await post(announced(made), "/x", {}, { timeoutMs: 50 }), { kind: "slow" });
});

test("a caller that loses interest ends the question", async (context) => {
  const made = await stage(context);
  const presence = announced(made);
  const caller = new AbortController();
  made.daemon.reply = () => {
    caller.abort(new Error("enough"));
    return undefined;
  };
  await assert.rejects(post(presence, "/x", {}, { ...PATIENT, signal: caller.signal }), /enough/);
});

test("a caller that has lost interest before is not asked for", async (context) => {
  const made = await stage(context);
  const signal = AbortSignal.abort(new Error("enough"));
  await assert.rejects(post(announced(made), "/x", {}, { ...PATIENT, signal }), /enough/);
  assert.deepEqual(made.daemon.asked, []);
});

test("an answered question holds on to nothing of its caller", async (context) => {
  const made = await stage(context);
  made.daemon.reply = () => answer({});
  const { signal } = new AbortController();
  await post(announced(made), "/x", {}, { ...PATIENT, signal });
  assert.deepEqual(getEventListeners(signal, "abort"), []);
});
