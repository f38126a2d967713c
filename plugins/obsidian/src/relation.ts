/** Relations, written by the engine: it keeps every other byte of a note, and refuses to overwrite what it has not seen. */

import { Notice } from "obsidian";

import { Refused } from "./answers";
import type { Companion } from "./companion";
import { confirm } from "./confirm_modal";
import { hasId, noteAt, saveEditors } from "./notes";
import { stateOf } from "./related_feed";
import { wordsFor } from "./states";

const TRIES = 3;

/** Write a relation from one note to another, and say what became of it. */
export async function relate(companion: Companion, from: string, to: string): Promise<boolean> {
  const target = noteAt(companion.app, to);
  if (!target) {
    new Notice("That note no longer exists.");
    return false;
  }
  let mayAddId = false;
  if (!hasId(companion.app, target)) {
    const asked = `“${target.basename}” has no ID, which relations need. One line is added to its properties.`;
    mayAddId = await confirm(companion.app, "Add an ID?", asked, "Add ID and relation");
    if (!mayAddId) return false;
  }
  try {
    const isNew = await write(companion, from, to, mayAddId);
    new Notice(isNew ? `Related to “${target.basename}”.` : `Already related to “${target.basename}”.`);
    return true;
  } catch (error) {
    tell(companion, error);
    return false;
  }
}

/** What the user just asked for went wrong: say so. */
export function tell(companion: Companion, error: unknown): void {
  const words = wordsFor(stateOf(error), companion.around());
  new Notice(`${words.title}. ${words.text}`.replace("..", "."));
}

async function write(companion: Companion, from: string, to: string, mayAddId: boolean): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    await saveEditors(companion.app, [from, to]);
    try {
      const { data } = await companion.connection.call("obsidian_rag_add_relation", { note: from, target: to, add_missing_id: mayAddId });
      return data?.["written"] === true;
    } catch (error) {
      // Somebody typed between saving and writing: what they typed is saved and seen the next time.
      const isChanged = error instanceof Refused && error.problem.code === "NOTE_CHANGED";
      if (!isChanged || tries === TRIES) throw error;
    }
  }
}
