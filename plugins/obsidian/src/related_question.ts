/** The question behind the panel: what belongs to a note, or to its text while the engine does not know it. */

import { Refused, parseRelated } from "./answers";
import type { Companion } from "./companion";
import { isLeftOut, noteAt } from "./notes";
import type { RelatedView } from "./related_feed";
import type { PanelState } from "./states";

/** A filter chooses from so many. */
export const FILTERED_FROM = 200;
const MOST_CHARS = 20_000;
const NOTHING = { answer: { notes: [], hiddenLinked: 0, compared: 0 }, isByText: true };

type Found = Omit<RelatedView, "path"> | PanelState;

export async function askRelated(companion: Companion, path: string, isFiltered: boolean, signal: AbortSignal): Promise<Found> {
  const { connection, panel } = companion;
  const question = { hide_linked: panel.hideLinked, ...(isFiltered ? { max_results: FILTERED_FROM } : {}) };
  try {
    const { data } = await connection.call("obsidian_rag_related", { note: path, ...question }, { signal });
    return { answer: parseRelated(data ?? {}, connection.linkId), isByText: false };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    const job = connection.state.kind === "ready" ? connection.state.status.job : null;
    if (error.problem.code === "INDEX_NOT_FOUND" && job) return { kind: "indexing", done: job.done, total: job.total };
    if (error.problem.code !== "NOT_FOUND") throw error;
    return await askByText(companion, path, question, signal);
  }
}

/** A note that is not indexed yet, such as a new one, is compared by its text. */
async function askByText(companion: Companion, path: string, question: Record<string, unknown>, signal: AbortSignal): Promise<Found> {
  const { app, connection } = companion;
  const file = noteAt(app, path);
  if (!file) return NOTHING;
  const reason = reasonLeftOut(companion, path);
  if (reason) return { kind: "excluded", reason };
  const text = (await app.vault.cachedRead(file)).slice(0, MOST_CHARS);
  if (!text.trim()) return NOTHING;
  try {
    const { data } = await connection.call("obsidian_rag_related", { text, ...question }, { signal });
    const answer = parseRelated(data ?? {}, connection.linkId);
    return { answer: { ...answer, notes: answer.notes.filter((one) => one.path !== path) }, isByText: true };
  } catch (error) {
    // No note has any of its words.
    if (error instanceof Refused && error.problem.code === "INVALID_ARGUMENT") return NOTHING;
    throw error;
  }
}

function reasonLeftOut(companion: Companion, path: string): string | undefined {
  const file = noteAt(companion.app, path);
  if (file && isLeftOut(companion.app, file)) return "Its property rag is false.";
  const folders = companion.engine["excluded_folders"];
  const named: unknown = Array.isArray(folders) ? folders.find((one) => typeof one === "string" && path.startsWith(`${one}/`)) : undefined;
  return typeof named === "string" ? `The folder ${named} is excluded.` : undefined;
}
