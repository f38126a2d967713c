/** The gateway keeps the daemon: starts it, logs its health, and stops it again. */

import type { Door } from "./door.ts";
import { type Envelope, inWords } from "./envelope.ts";
import type { Service, ServiceContext } from "./host.ts";
import type { Launcher } from "./launcher.ts";
import type { Settings } from "./settings.ts";
import { VERSION } from "./tools.ts";
import { mismatch } from "./versions.ts";

export function keeperOf(door: Door, launcher: Launcher, settings: Settings): Service {
  let starting: Promise<void> = Promise.resolve();
  let over = new AbortController();
  return {
    id: "obsidian-rag",
    start(context) {
      launcher.isKept = true;
      over = new AbortController();
      const { signal } = over;
      // Not awaited: the gateway is ready before the daemon is, and tools wait for it by themselves.
      starting = settings.autoStart
        ? begin(context, door, signal).catch((error: unknown) => {
            if (!signal.aborted) context.logger.warn(`obsidian-rag: ${String(error)}`);
          })
        : Promise.resolve();
    },
    async stop(context) {
      over.abort();
      await starting;
      launcher.isKept = false;
      if (await door.stop()) context.logger.info("obsidian-rag: stopped the daemon");
    },
  };
}

async function begin(context: ServiceContext, door: Door, signal: AbortSignal): Promise<void> {
  const { envelope, version } = await door.ask("obsidian_rag_status", {}, signal);
  const outdated = version === undefined ? undefined : mismatch(VERSION, version);
  if (outdated !== undefined) context.logger.warn(`obsidian-rag: ${outdated}`);
  report(context, envelope);
}

/** Health on load, in the gateway's log. */
function report({ logger, serviceHealth }: ServiceContext, envelope: Envelope): void {
  const { data, error } = envelope;
  if (data !== null) serviceHealth?.clearFailure();
  else serviceHealth?.reportFailure(new Error(inWords(envelope)));
  const counts = data === null ? "" : `, ${String(data["total_docs"])} notes, ${String(data["total_chunks"])} chunks`;
  const line = `obsidian-rag: ${envelope.status}${counts}`;
  if (error === null) logger.info(line);
  else logger.warn(`${line}; ${inWords(envelope)}`);
}
