/** One question to the daemon over loopback. Knows neither files nor the environment. */

import { type Envelope, isEnvelope } from "./envelope.ts";
import type { Presence } from "./presence.ts";

/** An answer, or why there is none: nobody (of ours) listens there, or it took too long. */
export type Outcome = { kind: "answer"; envelope: Envelope } | { kind: "gone" } | { kind: "slow" };

export interface Patience {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

/** Post JSON to a path of the daemon; rejects only when the caller's own signal is aborted. */
export async function post(daemon: Presence, path: string, body: unknown, patience: Patience): Promise<Outcome> {
  const limit = AbortSignal.timeout(patience.timeoutMs);
  const signal = patience.signal === undefined ? limit : AbortSignal.any([limit, patience.signal]);
  try {
    const response = await fetch(`http://127.0.0.1:${daemon.port}${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${daemon.token}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
      redirect: "error",
      signal,
    });
    const answer: unknown = await response.json();
    // 401: an old token, or another program that got the port.
    if (response.status === 401 || !isEnvelope(answer)) return { kind: "gone" };
    return { kind: "answer", envelope: answer };
  } catch (error) {
    patience.signal?.throwIfAborted();
    if (limit.aborted) return { kind: "slow" };
    if (error instanceof TypeError || error instanceof SyntaxError) return { kind: "gone" };
    throw error;
  }
}
