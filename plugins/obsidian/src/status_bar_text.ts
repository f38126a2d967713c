/** What the status bar says. */

import type { ConnectionState } from "./connection";
import { ago, count, healthWord } from "./states";

export function statusText(state: ConnectionState): { label: string; tip: string; kind: string } {
  if (state.kind === "ready") {
    const { status } = state;
    const { job } = status;
    if (job) {
      const far = job.total ? ` ${count(job.done)}/${count(job.total)}` : "…";
      return { label: `RAG: indexing${far}`, tip: "Notes are being indexed", kind: "indexing" };
    }
    if (status.health === "unavailable") return { label: "RAG: not indexed", tip: status.problem?.message ?? "Unavailable", kind: "off" };
    const label = `RAG: ${count(status.notes)} notes | ${ago(status.lastSync)}`;
    const isWell = status.health === "healthy";
    return { label, tip: isWell ? healthWord(status.health, status.leftOut) : (status.problem?.message ?? "Degraded"), kind: isWell ? "healthy" : "degraded" };
  }
  const words = { connecting: "connecting…", starting: "starting…", off: "engine off", "other-vault": "other vault", refused: "not ready" };
  return { label: `RAG: ${words[state.kind]}`, tip: "Click for details", kind: "off" };
}
