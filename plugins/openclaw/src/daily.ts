/** OpenClaw's daily memory file, which its own memory_search reads: a remembered fact is a line there too. */

import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";

export interface Fact {
  key: string;
  value: string;
  source: string;
}

/** The fact as one line of Markdown. */
export function lineOf(fact: Fact): string {
  return `- ${plain(fact.key)}: ${plain(fact.value)} (from the Obsidian note ${plain(fact.source)})\n`;
}

/** `memory/YYYY-MM-DD.md` by the local date. */
export function dailyName(now: Date): string {
  const two = (part: number): string => String(part).padStart(2, "0");
  return `memory/${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}.md`;
}

/** Append a fact to today's file of a workspace, and return the file's name in it. */
export async function noteDown(workspaceDir: string, fact: Fact, now = new Date()): Promise<string> {
  const name = dailyName(now);
  await mkdir(join(workspaceDir, "memory"), { recursive: true });
  const file = await open(join(workspaceDir, name), "a+");
  try {
    const { size } = await file.stat();
    const last = Buffer.alloc(1);
    if (size > 0) await file.read(last, 0, 1, size - 1);
    const gap = size > 0 && last.toString() !== "\n" ? "\n" : "";
    await file.appendFile(gap + lineOf(fact));
  } finally {
    await file.close();
  }
  return name;
}

/** On one line: a value of several lines must not look like several facts, or like a heading. */
function plain(text: string): string {
  return text.trim().replace(/\r\n|[\n\r\u2028\u2029]/g, "\\n");
}
