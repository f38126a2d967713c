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
  patience.signal?.throwIfAborted();
  // Our own signal, let go of with the answer: an AbortSignal.timeout would live on for the whole time it was given.
  const line = new AbortController();
  const hangUp = (): void => line.abort();
  const limit = setTimeout(hangUp, patience.timeoutMs);
  patience.signal?.addEventListener("abort", hangUp);
  try {
    const response = await fetch(`http://127.0.0.1:${daemon.port}${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${daemon.token}`, "Content-Type": "application/json" },
      body: JSON.stringify(body),
      redirect: "error",
      signal: line.signal,
    });
    const answer: unknown = await response.json();
    // 401: an old token, or another program that got the port.
    if (response.status === 401 || !isEnvelope(answer)) return { kind: "gone" };
    return { kind: "answer", envelope: answer };
  } catch (error) {
    patience.signal?.throwIfAborted();
    if (line.signal.aborted) return { kind: "slow" };
    if (error instanceof TypeError || error instanceof SyntaxError) return { kind: "gone" };
    throw error;
  } finally {
    clearTimeout(limit);
    patience.signal?.removeEventListener("abort", hangUp);
  }
}
