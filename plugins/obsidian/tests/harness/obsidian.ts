/**
 * Stands in for Obsidian in a browser. The vault is the real one, read and written through the test's server.
 * Not emulated: deferred views, pop-out windows, focus and scope of the app, its CSS, its link resolution.
 */

import "./dom";
import { make } from "./dom";
import { ChevronRight, ChevronsUpDown, Filter, Link, Unlink, Waypoints } from "lucide-static";

export * from "./obsidian_modals";
export * from "./obsidian_settings";

const ICONS: Record<string, string> = {
  "chevron-right": ChevronRight,
  "chevrons-up-down": ChevronsUpDown,
  filter: Filter,
  link: Link,
  unlink: Unlink,
  waypoints: Waypoints,
};

type Listener = (...data: never[]) => unknown;

export class Events {
  private listeners: { name: string; listener: Listener }[] = [];
  on(name: string, listener: Listener): { name: string; listener: Listener; from: Events } {
    const entry = { name, listener, from: this };
    this.listeners.push(entry);
    return entry;
  }
  off(entry: { listener: Listener }): void {
    this.listeners = this.listeners.filter((one) => one.listener !== entry.listener);
  }
  trigger(name: string, ...data: unknown[]): void {
    for (const one of [...this.listeners]) if (one.name === name) (one.listener as (...all: unknown[]) => void)(...data);
  }
  get size(): number {
    return this.listeners.length;
  }
}

export class Component {
  private ends: (() => unknown)[] = [];
  register(end: () => unknown): void {
    this.ends.push(end);
  }
  registerEvent(entry: { listener: Listener; from: Events }): void {
    this.register(() => entry.from.off(entry));
  }
  registerDomEvent(element: HTMLElement, name: string, act: EventListener): void {
    element.addEventListener(name, act);
    this.register(() => element.removeEventListener(name, act));
  }
  registerInterval(id: number): number {
    this.register(() => window.clearInterval(id));
    return id;
  }
  unload(): void {
    for (const end of this.ends.splice(0).reverse()) end();
  }
}

export class TAbstractFile {
  constructor(public path: string) {}
  get name(): string {
    return this.path.split("/").pop() ?? "";
  }
}
export class TFile extends TAbstractFile {
  get extension(): string {
    return this.name.includes(".") ? (this.name.split(".").pop() ?? "") : "";
  }
  get basename(): string {
    return this.name.replace(/\.[^.]*$/, "");
  }
}
export class TFolder extends TAbstractFile {}

export class FileSystemAdapter {
  constructor(private readonly root: string) {}
  getBasePath(): string {
    return this.root;
  }
}

export class Vault extends Events {
  configDir = ".obsidian";
  files = new Map<string, TFile>();
  adapter: FileSystemAdapter;
  constructor(root: string, paths: string[]) {
    super();
    this.adapter = new FileSystemAdapter(root);
    for (const path of paths) this.files.set(path, new TFile(path));
  }
  getFileByPath(path: string): TFile | null {
    return this.files.get(path) ?? null;
  }
  getAllFolders(): TFolder[] {
    const names = new Set([...this.files.keys()].map((path) => path.split("/").slice(0, -1).join("/")).filter(Boolean));
    return [...names].sort().map((name) => new TFolder(name));
  }
  async cachedRead(file: TFile): Promise<string> {
    return await (await fetch(`/vault/read?path=${encodeURIComponent(file.path)}`)).text();
  }
  async write(path: string, text: string): Promise<void> {
    await fetch(`/vault/write?path=${encodeURIComponent(path)}`, { method: "POST", body: text });
  }
  async rename(from: string, to: string): Promise<void> {
    await fetch(`/vault/rename?path=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}`, { method: "POST" });
    const file = this.files.get(from);
    if (!file) return;
    this.files.delete(from);
    file.path = to;
    this.files.set(to, file);
    this.trigger("rename", file, from);
  }
  async remove(path: string): Promise<void> {
    await fetch(`/vault/remove?path=${encodeURIComponent(path)}`, { method: "POST" });
    const file = this.files.get(path);
    this.files.delete(path);
    this.trigger("delete", file);
  }
}

export class View extends Component {
  containerEl = make(null, "div", "view");
  contentEl = make(this.containerEl, "div", "view-content");
  app: App;
  navigation = true;
  icon = "";
  constructor(public leaf: WorkspaceLeaf) {
    super();
    this.app = leaf.app;
  }
  getViewType(): string {
    return "";
  }
  async onOpen(): Promise<void> {}
  async onClose(): Promise<void> {}
  setEphemeralState(state: { line?: number }): void {
    void state;
  }
}
export class ItemView extends View {}

/** An editor is a text area; what is typed is saved only when `save` is called, as in the app for two seconds. */
export class MarkdownView extends View {
  file: TFile | null = null;
  saved = 0;
  area = make(this.contentEl, "textarea", "editor") as HTMLTextAreaElement;
  editor = {
    replaceSelection: (text: string): void => this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end"),
    getValue: (): string => this.area.value,
  };
  override getViewType(): string {
    return "markdown";
  }
  override setEphemeralState(state: { line?: number }): void {
    this.containerEl.dataset["line"] = String(state.line ?? "");
  }
  async save(): Promise<void> {
    this.saved += 1;
    if (this.file) await this.app.vault.write(this.file.path, this.area.value);
  }
  async reload(): Promise<void> {
    if (this.file) this.area.value = await this.app.vault.cachedRead(this.file);
  }
}

export class WorkspaceLeaf {
  view: View;
  constructor(public app: App, public place: HTMLElement) {
    this.view = new View(this);
  }
  async openFile(file: TFile, state: { eState?: { line?: number } } = {}): Promise<void> {
    const view = new MarkdownView(this);
    view.file = file;
    this.show(view);
    await view.reload();
    if (state.eState) view.setEphemeralState(state.eState);
    this.app.workspace.active = this;
    this.app.workspace.trigger("file-open", file);
  }
  show(view: View): void {
    this.view.containerEl.remove();
    this.view = view;
    this.place.appendChild(view.containerEl);
  }
}

export class Workspace extends Events {
  leaves: WorkspaceLeaf[] = [];
  active: WorkspaceLeaf | null = null;
  makers = new Map<string, (leaf: WorkspaceLeaf) => View>();
  constructor(private readonly app: App) {
    super();
  }
  onLayoutReady(act: () => void): void {
    act();
  }
  getActiveFile(): TFile | null {
    const view = this.active?.view;
    return view instanceof MarkdownView ? view.file : null;
  }
  getActiveViewOfType<T>(kind: new (...all: never[]) => T): T | null {
    return this.active?.view instanceof kind ? this.active.view : null;
  }
  getMostRecentLeaf(): WorkspaceLeaf | null {
    return this.active;
  }
  getLeavesOfType(type: string): WorkspaceLeaf[] {
    return this.leaves.filter((leaf) => leaf.view.getViewType() === type);
  }
  getLeaf(pane: string | boolean): WorkspaceLeaf {
    if (!pane && this.active) return this.active;
    const leaf = new WorkspaceLeaf(this.app, make(document.getElementById("main"), "div", "leaf"));
    this.leaves.push(leaf);
    document.body.dataset["opened"] = String(pane);
    return leaf;
  }
  async ensureSideLeaf(type: string): Promise<WorkspaceLeaf> {
    const found = this.getLeavesOfType(type)[0];
    if (found) return found;
    const leaf = new WorkspaceLeaf(this.app, document.getElementById("right") as HTMLElement);
    this.leaves.push(leaf);
    const view = this.makers.get(type)?.(leaf);
    if (view) {
      leaf.show(view);
      await view.onOpen();
    }
    return leaf;
  }
  /** No file is open any more. */
  closeAll(): void {
    for (const leaf of this.leaves.filter((one) => one.view instanceof MarkdownView)) leaf.view.containerEl.remove();
    this.leaves = this.leaves.filter((one) => !(one.view instanceof MarkdownView));
    this.active = null;
    this.trigger("file-open", null);
  }
}

export class App {
  vault: Vault;
  workspace = new Workspace(this);
  metadataCache = {
    getFileCache: (file: TFile) => ({ frontmatter: this.properties[file.path] }),
  };
  fileManager = {
    generateMarkdownLink: (file: TFile, _from: string, subpath = ""): string => `[[${file.basename}${subpath}]]`,
  };
  setting = {
    open: (): void => void (document.body.dataset["settings"] = "open"),
    openTabById: (id: string): void => void (document.body.dataset["settings"] = id),
  };
  constructor(root: string, paths: string[], public properties: Record<string, Record<string, unknown>>) {
    this.vault = new Vault(root, paths);
  }
  loadLocalStorage(key: string): unknown {
    return JSON.parse(window.sessionStorage.getItem(key) ?? "null");
  }
  saveLocalStorage(key: string, value: unknown): void {
    window.sessionStorage.setItem(key, JSON.stringify(value));
  }
}

export interface Command {
  id: string;
  name: string;
  hotkeys?: unknown[];
  callback?: () => void;
  checkCallback?: (isChecking: boolean) => boolean;
}

export class Plugin extends Component {
  commands: Command[] = [];
  tabs: { containerEl: HTMLElement; display(): void }[] = [];
  data: unknown = null;
  constructor(public app: App, public manifest: { id: string }) {
    super();
  }
  async loadData(): Promise<unknown> {
    return this.data;
  }
  async saveData(data: unknown): Promise<void> {
    this.data = JSON.parse(JSON.stringify(data));
  }
  registerView(type: string, maker: (leaf: WorkspaceLeaf) => View): void {
    this.app.workspace.makers.set(type, maker);
  }
  registerHoverLinkSource(): void {}
  addRibbonIcon(icon: string, title: string, act: () => void): HTMLElement {
    const button = make(document.getElementById("ribbon"), "button", { cls: "clickable-icon", attr: { "aria-label": title } });
    setIcon(button, icon);
    button.addEventListener("click", act);
    return button;
  }
  addStatusBarItem(): HTMLElement {
    return make(document.getElementById("status"), "div", "status-bar-item");
  }
  addSettingTab(tab: { containerEl: HTMLElement; display(): void }): void {
    this.tabs.push(tab);
  }
  addCommand(command: Command): void {
    this.commands.push(command);
  }
}

export const Platform = { isDesktop: true, isMacOS: false };
export const Keymap = {
  isModEvent: (event: MouseEvent | KeyboardEvent): string | boolean => (event.ctrlKey || event.metaKey || ("button" in event && event.button === 1) ? "tab" : false),
};

export function setIcon(element: HTMLElement, name: string): void {
  const holder = document.createElement("template");
  holder.innerHTML = ICONS[name] ?? "";
  element.replaceChildren(holder.content);
}
export function setTooltip(element: HTMLElement, tip: string): void {
  element.setAttribute("title", tip);
}
export function debounce<T extends unknown[]>(act: (...all: T) => void, ms: number): (...all: T) => void {
  let timer = 0;
  return (...all) => {
    window.clearTimeout(timer);
    timer = window.setTimeout(() => act(...all), ms);
  };
}
export function normalizePath(path: string): string {
  return path.replace(/[\\/]+/g, "/").replace(/^\/|\/$/g, "").replace(/\u00a0/g, " ").normalize("NFC");
}
export function stripHeadingForLink(heading: string): string {
  return heading.replace(/[#|^:%[\]\\]+/g, " ").replace(/\s+/g, " ").trim();
}
export function requireApiVersion(): boolean {
  return true;
}
