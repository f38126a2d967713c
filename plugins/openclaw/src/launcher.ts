/** Runs the engine's command: starts its daemon, with a vault if none is configured yet, and stops it. */

import { type Envelope, failure, isEnvelope } from "./envelope.ts";
import type { CommandResult, RunCommand } from "./host.ts";
import { expanded, isConfigured } from "./presence.ts";
import type { Settings } from "./settings.ts";

const START_MS = 60_000;
const STOP_MS = 30_000;
const SHOWN_CHARS = 600;
/** Outside a gateway nobody stops the daemon, so it goes by itself. */
const IDLE_EXIT_S = 600;

export class Launcher {
  /** The daemon that we started, and so have to stop. */
  started: number | undefined;
  /** Whether a gateway keeps us: then the daemon lives as long as this process. */
  isKept = false;
  private readonly run: RunCommand;
  private readonly settings: Settings;
  private readonly folder: string;
  private starting: Promise<Envelope> | undefined;

  constructor(run: RunCommand, settings: Settings, folder: string) {
    this.run = run;
    this.settings = settings;
    this.folder = folder;
  }

  /** Start the daemon, once however many ask; an envelope with data says that it runs. */
  start(): Promise<Envelope> {
    this.starting ??= this.launch().finally(() => {
      this.starting = undefined;
    });
    return this.starting;
  }

  /** Wait until the daemon has let go of the data folder. */
  async stop(): Promise<Envelope> {
    this.started = undefined;
    return await this.command(["serve", "--stop", "--json"], STOP_MS);
  }

  private async launch(): Promise<Envelope> {
    const { vaultPath } = this.settings;
    if (vaultPath !== undefined && !isConfigured(this.folder)) {
      const configured = await this.command(["init", "--vault", expanded(vaultPath), "--json"], START_MS);
      if (configured.data === null) return configured;
    }
    for (const [name, value] of Object.entries(this.settings.livesync)) {
      const words = ["config", "set", `livesync.${name}`, JSON.stringify(value), "--json"];
      const written = await this.command(words, START_MS);
      if (written.data === null) return written;
    }
    const lifetime = this.isKept
      ? ["--parent-pid", String(process.pid)]
      : ["--idle-exit", String(IDLE_EXIT_S)];
    const answer = await this.command(["serve", "--detach", "--json", ...lifetime], START_MS);
    const pid = answer.data?.["pid"];
    // `started: false`: somebody else was quicker, and keeps it.
    if (this.isKept && typeof pid === "number" && answer.data?.["started"] !== false) this.started = pid;
    return answer;
  }

  private async command(words: string[], timeoutMs: number): Promise<Envelope> {
    const { command, home, livesyncPassword } = this.settings;
    const env = {
      ...(home === undefined ? {} : { OBSIDIAN_RAG_HOME: expanded(home) }),
      ...(livesyncPassword === undefined ? {} : { OBSIDIAN_RAG_LIVESYNC_PASSWORD: livesyncPassword }),
    };
    let result: CommandResult;
    try {
      result = await this.run([command, ...words], { timeoutMs, env });
    } catch (error) {
      return isMissing(error) ? notInstalled(command) : notStarted(String(error));
    }
    const answer = parsed(result.stdout);
    if (answer !== undefined) return answer;
    // A shell's own answer to an unknown command, for hosts that go through one.
    if (result.code === 127 || (result.code === null && result.termination === "exit")) return notInstalled(command);
    if (result.termination === "timeout") return notStarted(`It did not answer within ${timeoutMs / 1000} s.`);
    return notStarted(result.stderr.trim().slice(-SHOWN_CHARS) || `It ended with code ${result.code}.`);
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && ("code" in error ? error.code === "ENOENT" : error.message.includes("ENOENT"));
}

function parsed(output: string): Envelope | undefined {
  try {
    const found: unknown = JSON.parse(output);
    return isEnvelope(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

function notInstalled(command: string): Envelope {
  return failure(
    "NOT_INSTALLED",
    `obsidian-rag is not installed: there is no command '${command}' in OpenClaw's PATH.`,
    "Run `pipx install ./obsidian-rag` beside a clone of the repository. If it is installed, give its full path as" +
      " plugins.entries.obsidian-rag.config.command.",
  );
}

function notStarted(why: string): Envelope {
  return failure(
    "INDEXER_FAILED",
    `The obsidian-rag daemon did not start. ${why}`,
    "Run `obsidian-rag doctor`, then `obsidian-rag serve --detach`, in a terminal.",
  );
}
