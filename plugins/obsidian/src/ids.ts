/** Ids of notes: all of them checked, and missing ones added on request. */

import { Modal, Notice } from "obsidian";

import { Refused, isRecord, number, records, text, texts } from "./answers";
import type { Companion } from "./companion";
import { confirm } from "./confirm_modal";
import { openNote, saveEditors } from "./notes";
import { tell } from "./relation";
import { count } from "./states";

const AT_ONCE = 200;
const LISTED = 50;
const LONG_MS = 120_000;

interface IdReport {
  notes: number;
  missing: string[];
  duplicates: { id: string; notes: string[] }[];
  broken: string[];
  dangling: { note: string; target: string }[];
}

const READ_ONLY = "The engine only reads this vault: it is linked beside another one.";

/** Tools for ids mean the engine's first vault; in another one they would change the wrong notes. */
function refuseLinked(companion: Companion): void {
  if (!companion.connection.isPrimary) throw new Refused({ code: "READ_ONLY", message: READ_ONLY, suggestion: "" });
}

async function check(companion: Companion): Promise<IdReport> {
  await companion.connection.connect();
  refuseLinked(companion);
  const { data } = await companion.connection.call("obsidian_rag_check_ids", {}, { timeoutMs: LONG_MS });
  const found = data ?? {};
  return {
    notes: number(found["notes"]),
    missing: texts(found["missing"]),
    duplicates: records(found["duplicates"]).map((one) => ({ id: text(one["id"]), notes: [text(one["kept"]), ...texts(one["others"])] })),
    broken: [...records(found["invalid"]), ...records(found["not_lower_case"])].map((one) => text(one["note"])),
    dangling: records(found["dangling"]).map((one) => ({ note: text(one["note"]), target: text(one["target"]) })),
  };
}

/** Write an id into one note. */
export async function addId(companion: Companion, path: string): Promise<void> {
  try {
    const [done] = await add(companion, [path]);
    if (done?.outcome === "added") new Notice("The note has an ID now.");
    else new Notice(done?.outcome === "existing" ? "The note has an ID already." : (done?.reason ?? "No ID was added."));
  } catch (error) {
    tell(companion, error);
  }
}

/** Write an id into every note that has none, after asking. */
export async function addAllIds(companion: Companion): Promise<void> {
  try {
    const { missing } = await check(companion);
    if (!missing.length) {
      new Notice("Every note has an ID.");
      return;
    }
    const many = missing.length === 1 ? "1 note has no ID" : `${count(missing.length)} notes have no ID`;
    const agreed = await confirm(companion.app, "Add ids to all notes?", `${many}. One line is added to the properties of each; nothing else changes.`, "Add ids");
    if (!agreed) return;
    const notice = new Notice("Adding ids…", 0);
    let added = 0;
    const failed: string[] = [];
    try {
      for (let at = 0; at < missing.length; at += AT_ONCE) {
        for (const done of await add(companion, missing.slice(at, at + AT_ONCE))) {
          if (done.outcome === "failed") failed.push(done.reason);
          else added += 1;
        }
        notice.setMessage(`Adding ids: ${count(added)} of ${count(missing.length)}…`);
      }
    } finally {
      notice.hide();
    }
    new Notice(`${count(added)} notes have an ID now.${failed.length ? ` ${count(failed.length)} could not get one: ${failed[0]}` : ""}`);
  } catch (error) {
    tell(companion, error);
  }
}

async function add(companion: Companion, notes: string[]): Promise<{ outcome: string; reason: string }[]> {
  await companion.connection.connect();
  refuseLinked(companion);
  await saveEditors(companion.app, notes);
  const { data } = await companion.connection.call("obsidian_rag_add_ids", { notes }, { timeoutMs: LONG_MS });
  return records(data?.["notes"]).map((one) => ({
    outcome: text(one["outcome"]),
    reason: isRecord(one["error"]) ? text(one["error"]["message"]) : "",
  }));
}

/** Show which ids are used twice, and what else is wrong with ids. */
export async function checkIds(companion: Companion): Promise<void> {
  try {
    new IdReportModal(companion, await check(companion)).open();
  } catch (error) {
    tell(companion, error);
  }
}

class IdReportModal extends Modal {
  constructor(private readonly companion: Companion, report: IdReport) {
    super(companion.app);
    this.setTitle("Ids of your notes");
    this.modalEl.addClass("rag-companion-ids");
    const { contentEl } = this;
    const isClean = !report.missing.length && !report.duplicates.length && !report.broken.length && !report.dangling.length;
    contentEl.createEl("p", { text: isClean ? `${count(report.notes)} notes, each with a valid ID.` : `${count(report.notes)} notes were checked.` });
    for (const { id, notes } of report.duplicates) {
      contentEl.createEl("p", { cls: "rag-companion-strong", text: `Used twice: ${id}` });
      this.links(notes);
    }
    this.section("Ids that are not a UUID v4 in lower case", report.broken);
    this.section("Relations to missing notes", report.dangling.map((one) => one.note));
    this.section("Notes without an ID", report.missing);
  }

  private section(title: string, paths: string[]): void {
    if (!paths.length) return;
    this.contentEl.createEl("p", { cls: "rag-companion-strong", text: `${title} (${count(paths.length)})` });
    this.links(paths.slice(0, LISTED));
    if (paths.length > LISTED) this.contentEl.createEl("p", { text: `… and ${count(paths.length - LISTED)} more.` });
  }

  private links(paths: string[]): void {
    const list = this.contentEl.createEl("ul");
    for (const path of paths) {
      const link = list.createEl("li").createEl("a", { text: path.replace(/\.md$/, ""), href: "#" });
      link.addEventListener("click", (event) => {
        event.preventDefault();
        this.close();
        void openNote(this.app, path, 0, event, this.companion.panel);
      });
    }
  }

  override onClose(): void {
    this.contentEl.empty();
  }
}
