/** The way to the engine: finds its daemon, starts it where there is none, and asks. */

import { post } from "./client.ts";
import { type Envelope, failure } from "./envelope.ts";
import type { Launcher } from "./launcher.ts";
import { type Presence, readPresence } from "./presence.ts";
import type { Settings } from "./settings.ts";

export interface Answer {
  envelope: Envelope;
  /** The daemon's version, where one answered. */
  version?: string;
}

export class Door {
  private readonly folder: string;
  private readonly launcher: Launcher;
  private readonly settings: Settings;

  constructor(folder: string, launcher: Launcher, settings: Settings) {
    this.folder = folder;
    this.launcher = launcher;
    this.settings = settings;
  }

  /** What a tool answers. Asking twice is asking once, for every tool, so a lost answer is asked for again. */
  async ask(tool: string, params: unknown, signal?: AbortSignal): Promise<Answer> {
    const path = `/tools/${encodeURIComponent(tool)}`;
    const seen = readPresence(this.folder);
    const first = await this.askAt(seen, path, params, signal);
    if (first !== undefined) return first;
    // It may have been restarted, with another port and token, while we asked.
    const now = readPresence(this.folder);
    if (now !== undefined && now.token !== seen?.token) {
      const second = await this.askAt(now, path, params, signal);
      if (second !== undefined) return second;
    }
    const started = await this.start();
    if (started.data === null) return { envelope: started };
    signal?.throwIfAborted();
    const last = await this.askAt(readPresence(this.folder), path, params, signal);
    return last ?? { envelope: lost() };
  }

  /** Start the daemon if that is allowed; an envelope with data says that one runs. */
  async start(): Promise<Envelope> {
    return this.settings.autoStart ? await this.launcher.start() : notRunning();
  }

  /** Stop the daemon if it is the one that we started, and say whether it was. */
  async stop(): Promise<boolean> {
    const ours = this.launcher.started;
    if (ours === undefined) return false;
    const daemon = readPresence(this.folder);
    if (daemon?.pid === ours) await post(daemon, "/shutdown", {}, { timeoutMs: this.settings.timeoutMs });
    await this.launcher.stop();
    return true;
  }

  private async askAt(
    daemon: Presence | undefined,
    path: string,
    params: unknown,
    signal: AbortSignal | undefined,
  ): Promise<Answer | undefined> {
    if (daemon === undefined) return undefined;
    const outcome = await post(daemon, path, params, { timeoutMs: this.settings.timeoutMs, signal });
    if (outcome.kind === "gone") return undefined;
    const envelope = outcome.kind === "answer" ? outcome.envelope : tooSlow(this.settings.timeoutMs);
    return { envelope, version: daemon.version };
  }
}

function notRunning(): Envelope {
  return failure(
    "BUSY",
    "The obsidian-rag daemon is not running, and the plugin may not start it (autoStart is false).",
    "Run `obsidian-rag serve --detach`.",
  );
}

function tooSlow(timeoutMs: number): Envelope {
  return failure(
    "BUSY",
    `The obsidian-rag daemon did not answer within ${timeoutMs / 1000} s.`,
    "Try again; `obsidian-rag doctor` shows what is wrong.",
  );
}

function lost(): Envelope {
  return failure(
    "INDEXER_FAILED",
    "The obsidian-rag daemon was started, but does not answer.",
    "Look at logs/daemon.log in the data folder; `obsidian-rag serve --stop` ends it.",
  );
}
