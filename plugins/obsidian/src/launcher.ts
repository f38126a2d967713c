/** Starts the engine that is installed on this machine. It installs nothing. */

import { execFile } from "child_process";

const START_MS = 60_000;

/** Start the daemon; rejects with a sentence if it does not start. */
export function startEngine(program: string, folder: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, OBSIDIAN_RAG_HOME: folder };
    execFile(program, ["serve", "--detach", "--json"], { env, timeout: START_MS, windowsHide: true }, (error, stdout) => {
      if (!error) resolve();
      else reject(new Error(reason(stdout) ?? "It gave no reason."));
    });
  });
}

function reason(stdout: string): string | undefined {
  try {
    const said = JSON.parse(stdout) as { error?: { message?: string; suggestion?: string } };
    return said.error?.message ? `${said.error.message} ${said.error.suggestion ?? ""}`.trim() : undefined;
  } catch {
    return undefined;
  }
}
