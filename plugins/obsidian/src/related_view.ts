/** The related-notes panel: follows the active note, and is never blank. */

import { type HoverPopover, ItemView, Notice, type WorkspaceLeaf, debounce, setIcon } from "obsidian";

import type { RelatedNote } from "./answers";
import type { Companion } from "./companion";
import { isEmpty, parseFilter, passes } from "./filter";
import { insertLink, linkTo, noteAt, openNote } from "./notes";
import { RelatedFeed, type RelatedView } from "./related_feed";
import { FILTERED_FROM, askRelated } from "./related_question";
import { RelatedRow } from "./related_row";
import { relate } from "./relation";
import { showState } from "./state_card";
import { type PanelState, count } from "./states";

export const RELATED_VIEW = "rag-companion-related";
const PATIENCE_MS = 400;

export class RelatedPanel extends ItemView {
  override navigation = false;
  override icon = "waypoints";
  hoverPopover: HoverPopover | null = null;
  private readonly feed: RelatedFeed;
  private readonly opened = new Set<string>();
  private rows: RelatedRow[] = [];
  private heading!: HTMLElement;
  private tally!: HTMLElement;
  private saying!: HTMLElement;
  private list!: HTMLElement;
  private filterInput!: HTMLInputElement;
  private linkedButton!: HTMLElement;
  private patience: number | undefined;
  private shownPath: string | null = null;
  private isAllOpen = false;

  constructor(leaf: WorkspaceLeaf, private readonly companion: Companion) {
    super(leaf);
    this.feed = new RelatedFeed((path, signal) => askRelated(companion, path, !isEmpty(this.filter), signal), {
      waiting: (path) => this.wait(path),
      found: (view) => this.show(view),
      state: (path, state) => this.showState(path, state),
    });
  }

  getViewType(): string {
    return RELATED_VIEW;
  }

  getDisplayText(): string {
    return "Related notes";
  }

  override async onOpen(): Promise<void> {
    this.build();
    const { workspace, vault } = this.app;
    this.registerEvent(workspace.on("file-open", () => this.follow()));
    this.app.workspace.onLayoutReady(() => {
      this.registerEvent(vault.on("rename", () => this.moved()));
      this.registerEvent(vault.on("delete", () => this.feed.again()));
      this.follow();
    });
    this.register(this.companion.connection.onIndexed(() => this.feed.refresh()));
    this.register(this.companion.connection.onState(() => this.connectionChanged()));
    this.register(() => this.feed.stop());
    this.register(() => window.clearTimeout(this.patience));
  }

  override async onClose(): Promise<void> {
    this.feed.stop();
    this.contentEl.empty();
  }

  /** Ask again, as after a change of the settings. */
  renew(): void {
    this.feed.refresh();
  }

  private build(): void {
    const content = this.contentEl;
    content.empty();
    content.addClass("rag-companion-panel");
    const head = content.createDiv({ cls: "rag-companion-bar-top" });
    const names = head.createDiv({ cls: "rag-companion-names" });
    this.heading = names.createDiv({ cls: "rag-companion-note" });
    this.tally = names.createDiv({ cls: "rag-companion-tally" });
    const buttons = head.createDiv({ cls: "rag-companion-tools" });
    this.linkedButton = this.tool(buttons, "unlink", "Hide linked notes", () => void this.toggleLinked());
    this.tool(buttons, "filter", "Filter", () => this.toggleFilter());
    this.tool(buttons, "chevrons-up-down", "Open or fold all", () => this.toggleAll());
    const bar = content.createDiv({ cls: "rag-companion-filter" });
    this.filterInput = bar.createEl("input", {
      type: "search",
      placeholder: "path:Projects #tag status=done words",
      attr: { "aria-label": "Filter by folder, tag, property or words" },
    });
    this.registerDomEvent(this.filterInput, "input", debounce(() => this.filterChanged(), 150, true));
    const here = bar.createEl("button", { text: "Same folder" });
    this.registerDomEvent(here, "click", () => this.sameFolder());
    bar.hidden = true;
    this.saying = content.createDiv({ cls: "rag-companion-saying", attr: { "aria-live": "polite" } });
    this.list = content.createDiv({ cls: "rag-companion-list", attr: { role: "list", "aria-label": "Related notes" } });
    this.registerDomEvent(this.list, "keydown", (event) => this.moveFocus(event));
    this.showLinkedButton();
  }

  private tool(parent: HTMLElement, icon: string, label: string, act: () => void): HTMLElement {
    const made = parent.createEl("button", { cls: "clickable-icon", attr: { "aria-label": label } });
    setIcon(made, icon);
    this.registerDomEvent(made, "click", act);
    return made;
  }

  private follow(): void {
    const file = this.app.workspace.getActiveFile();
    if (file && (file.extension === "md" || file.extension === "canvas")) {
      this.feed.follow(file.path);
      return;
    }
    this.feed.follow(null);
    this.showState(null, { kind: file ? "not-a-note" : "no-note" });
  }

  private moved(): void {
    const file = this.app.workspace.getActiveFile();
    if (file && file.path !== this.feed.path) this.follow();
    else this.feed.again();
  }

  private connectionChanged(): void {
    const { state } = this.companion.connection;
    if (state.kind === "ready") {
      if (this.list.hasClass("is-state")) this.feed.refresh();
    } else if (this.feed.path !== null) this.showState(this.feed.path, { kind: "connection", state });
  }

  /** The old list stays under its own name, dimmed, until there is something new. */
  private wait(path: string): void {
    window.clearTimeout(this.patience);
    this.list.addClass("is-waiting");
    this.list.setAttr("aria-busy", "true");
    this.patience = window.setTimeout(() => this.saying.setText(`Finding notes related to ${nameOf(path)}…`), PATIENCE_MS);
  }

  private settle(path: string | null): void {
    window.clearTimeout(this.patience);
    this.list.removeClass("is-waiting");
    this.list.removeAttribute("aria-busy");
    this.heading.setText(path === null ? "Related notes" : nameOf(path));
    this.saying.setText("");
  }

  private show(view: RelatedView): void {
    const isSame = view.path === this.shownPath;
    const top = this.list.scrollTop;
    const focused = isSame ? this.rows.findIndex((row) => row.element.contains(this.list.doc.activeElement)) : -1;
    if (!isSame) this.opened.clear();
    const { filter } = this;
    const most = typeof this.companion.engine["max_results"] === "number" ? this.companion.engine["max_results"] : FILTERED_FROM;
    const notes = view.answer.notes.filter((note) => this.isShown(note, view.path, filter)).slice(0, isEmpty(filter) ? undefined : most);
    this.settle(view.path);
    if (!notes.length) {
      this.showState(view.path, { kind: "nothing", hiddenLinked: view.answer.hiddenLinked, isFiltered: !isEmpty(filter) });
      return;
    }
    this.shownPath = view.path;
    this.list.empty();
    this.list.removeClass("is-state");
    this.rows = notes.map((note) => this.row(note, view.path));
    this.tally.setText(`${count(notes.length)} related${view.answer.hiddenLinked ? ` · ${count(view.answer.hiddenLinked)} linked hidden` : ""}`);
    if (view.isByText) this.saying.setText("Not indexed yet: compared by its text.");
    this.list.scrollTop = isSame ? top : 0;
    if (focused >= 0) this.focusRow(Math.min(focused, this.rows.length - 1));
  }

  private isShown(note: RelatedNote, path: string, filter: ReturnType<typeof parseFilter>): boolean {
    const file = noteAt(this.app, note.path);
    if (!file || file.path === path) return false;
    return isEmpty(filter) || passes(filter, note, this.app.metadataCache.getFileCache(file)?.frontmatter ?? {});
  }

  private row(note: RelatedNote, from: string): RelatedRow {
    const { app, companion } = this;
    const actions = {
      open: (line: number, event: MouseEvent | KeyboardEvent) => void openNote(app, note.path, line, event, companion.panel),
      insert: (headings: readonly string[]) => {
        if (!insertLink(app, note.path, from, headings)) new Notice("Open the note in an editor to insert a link.");
      },
      relate: () => void relate(companion, from, note.path),
      dragged: () => {
        const file = noteAt(app, note.path);
        return file ? linkTo(app, file, from) : "";
      },
      hover: (event: MouseEvent, target: HTMLElement) =>
        app.workspace.trigger("hover-link", { event, source: RELATED_VIEW, hoverParent: this, targetEl: target, linktext: note.path, sourcePath: from }),
      toggled: (isOpen: boolean) => void (isOpen ? this.opened.add(note.path) : this.opened.delete(note.path)),
    };
    return new RelatedRow(this.list, note, actions, this.opened.has(note.path));
  }

  private showState(path: string | null, state: PanelState): void {
    this.settle(path);
    this.shownPath = null;
    this.rows = [];
    this.tally.setText("");
    this.list.empty();
    this.list.addClass("is-state");
    showState(this.list, this.companion, state);
  }

  private get filter(): ReturnType<typeof parseFilter> {
    return parseFilter(this.filterInput.value);
  }

  private async toggleLinked(): Promise<void> {
    await this.companion.savePanel({ hideLinked: !this.companion.panel.hideLinked });
    this.showLinkedButton();
  }

  private showLinkedButton(): void {
    this.linkedButton.toggleClass("is-active", this.companion.panel.hideLinked);
    this.linkedButton.setAttr("aria-pressed", String(this.companion.panel.hideLinked));
  }

  /** Show or hide the filter; hiding clears it. */
  private toggleFilter(): void {
    const bar = this.filterInput.parentElement;
    if (!bar) return;
    bar.hidden = !bar.hidden;
    if (!bar.hidden) this.filterInput.focus();
    else this.clearFilter();
  }

  clearFilter(): void {
    if (!this.filterInput.value) return;
    this.filterInput.value = "";
    this.filterChanged();
  }

  private filterChanged(): void {
    this.feed.refresh();
  }

  private sameFolder(): void {
    const folder = this.feed.path?.split("/").slice(0, -1).join("/") ?? "";
    this.filterInput.value = `path:"${folder}"`;
    this.filterChanged();
  }

  private toggleAll(): void {
    this.isAllOpen = !this.isAllOpen;
    for (const row of this.rows) row.expand(this.isAllOpen);
  }

  private moveFocus(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const at = this.rows.findIndex((row) => row.element.contains(this.list.doc.activeElement));
    this.focusRow(Math.max(0, Math.min(this.rows.length - 1, at + step)));
  }

  private focusRow(at: number): void {
    this.rows[at]?.element.querySelector<HTMLElement>(".rag-companion-head")?.focus();
  }
}

function nameOf(path: string): string {
  return (path.split("/").pop() ?? path).replace(/\.(md|canvas)$/, "");
}
