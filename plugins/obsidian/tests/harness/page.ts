/** The page of the harness: the real plugin, on the stand-in, over fetch. */

import RagCompanion from "../../src/main";
import { SseParser } from "../../src/sse";
import { type Address, type Asked, Cancelled, type Listener, type Reply, type Transport, Unreachable } from "../../src/transport";
import { App, Plugin } from "./obsidian";

class FetchTransport implements Transport {
  async request(to: Address, asked: Asked): Promise<Reply> {
    const limit = new AbortController();
    const timer = window.setTimeout(() => limit.abort(), asked.timeoutMs);
    const cancel = (): void => limit.abort();
    asked.signal?.addEventListener("abort", cancel);
    try {
      const reply = await fetch(`/engine/${to.port}${asked.path}`, {
        method: asked.method,
        headers: { "X-Token": to.token },
        ...(asked.body === undefined ? {} : { body: JSON.stringify(asked.body) }),
        signal: limit.signal,
      });
      if (reply.status === 599) throw new Unreachable("refused");
      return { status: reply.status, body: await reply.json() };
    } catch (error) {
      if (asked.signal?.aborted) throw new Cancelled();
      if (error instanceof Unreachable) throw error;
      throw new Unreachable(limit.signal.aborted ? "slow" : "refused");
    } finally {
      window.clearTimeout(timer);
      asked.signal?.removeEventListener("abort", cancel);
    }
  }

  listen(to: Address, lastId: string, listener: Listener): () => void {
    const over = new AbortController();
    const parser = new SseParser((event) => listener.heard(event));
    const run = async (): Promise<void> => {
      const headers: Record<string, string> = { "X-Token": to.token, ...(lastId ? { "Last-Event-ID": lastId } : {}) };
      const reply = await fetch(`/engine/${to.port}/events`, { headers, signal: over.signal });
      const reader = reply.body?.pipeThrough(new TextDecoderStream()).getReader();
      if (reply.status !== 200 || !reader) return;
      listener.opened();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        parser.push(value);
      }
    };
    void run().catch(() => undefined).finally(() => {
      if (!over.signal.aborted) listener.ended();
    });
    return () => over.abort();
  }
}

class InBrowser extends RagCompanion {
  protected override makeTransport(): Transport {
    return new FetchTransport();
  }
}

interface Surroundings {
  root: string;
  paths: string[];
  properties: Record<string, Record<string, unknown>>;
  machine: unknown;
}

async function start(): Promise<void> {
  const around = (await (await fetch("/vault/list")).json()) as Surroundings;
  Object.assign(globalThis, { process: { env: around.machine, platform: "linux" } });
  const app = new App(around.root, around.paths, around.properties);
  const plugin = new InBrowser(app as never, { id: "rag-companion" } as never);
  Object.assign(window, { app, plugin });
  await plugin.onload();
  if (!new URLSearchParams(location.search).has("quiet")) plugin.onUserEnable();
  document.body.dataset["ready"] = "yes";
}

void Plugin;
void start();
