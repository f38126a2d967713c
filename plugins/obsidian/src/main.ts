/** The plugin's life: what is registered, what is started, what ends. The engine does the work. */

import { FileSystemAdapter, Notice, Plugin, requireApiVersion } from "obsidian";

import { isRecord } from "./answers";
import { addCommands, openSearch } from "./commands";
import type { Companion } from "./companion";
import { Connection } from "./connection";
import { DetailsModal, startIndex } from "./details_modal";
import { startEngine } from "./launcher";
import { dataFolder, findProgram, isSandboxed, readAddress } from "./presence";
import { RELATED_VIEW, RelatedPanel } from "./related_view";
import { MACHINE_DEFAULTS, type MachineSettings, PANEL_DEFAULTS, type PanelSettings, panelSettings } from "./settings";
import { CompanionSettingTab } from "./settings_tab";
import { type ActionId, type PanelState, type Surroundings, wordsFor } from "./states";
import { StatusBar } from "./status_bar";
import { NodeTransport, type Transport } from "./transport";

const MACHINE_KEY = "rag-companion-machine";

export default class RagCompanion extends Plugin implements Companion {
  connection!: Connection;
  panel: PanelSettings = PANEL_DEFAULTS;
  machine: MachineSettings = MACHINE_DEFAULTS;
  engine: Record<string, unknown> = {};
  private statusBar!: StatusBar;
  private wasReady = false;

  override async onload(): Promise<void> {
    this.panel = panelSettings(await this.loadData());
    this.machine = this.loadMachine();
    const vaultPath = this.vaultPath();
    const address = (): ReturnType<typeof readAddress> => readAddress(dataFolder(this.machine.dataFolder));
    this.connection = new Connection(this.makeTransport(), { address, vaultPath });
    this.register(() => this.connection.close());
    this.registerView(RELATED_VIEW, (leaf) => new RelatedPanel(leaf, this));
    this.registerHoverLinkSource(RELATED_VIEW, { display: "Related notes", defaultMod: true });
    this.addRibbonIcon("waypoints", "Find related notes", () => void this.showPanel());
    this.statusBar = new StatusBar(this.addStatusBarItem(), () => this.connection.state, () => new DetailsModal(this).open());
    this.register(() => this.statusBar.stop());
    this.statusBar.showIf(this.panel.showStatusBar);
    this.register(this.connection.onState(() => this.connectionChanged()));
    this.addSettingTab(new CompanionSettingTab(this.app, this, this));
    addCommands(this, () => this.showPanel());
    this.app.workspace.onLayoutReady(() => void this.connection.connect());
  }

  override onUserEnable(): void {
    void this.app.workspace.ensureSideLeaf(RELATED_VIEW, "right", { active: false, reveal: true });
  }

  override async onExternalSettingsChange(): Promise<void> {
    this.panel = panelSettings(await this.loadData());
    this.panelChanged();
  }

  protected makeTransport(): Transport {
    return new NodeTransport();
  }

  around(): Surroundings {
    return { hasProgram: Boolean(findProgram(this.machine.program)), isSandboxed: isSandboxed(), vaultPath: this.vaultPath() };
  }

  async savePanel(changes: Partial<PanelSettings>): Promise<void> {
    this.panel = { ...this.panel, ...changes };
    await this.saveData(this.panel);
    this.panelChanged();
  }

  async saveMachine(changes: Partial<MachineSettings>): Promise<void> {
    this.machine = { ...this.machine, ...changes };
    if (requireApiVersion("1.8.7")) this.app.saveLocalStorage(MACHINE_KEY, this.machine);
    await this.connection.reconnect();
  }

  async saveEngine(changes: Record<string, unknown>): Promise<void> {
    const { data } = await this.connection.call("obsidian_rag_relation_settings", { changes });
    if (isRecord(data?.["settings"])) this.engine = data["settings"];
    this.renewPanels();
  }

  act(action: ActionId, state: PanelState): void {
    const acts: Record<ActionId, () => void> = {
      start: () => void this.startEngine(),
      "copy-install": () => void this.copyCommand(state),
      "copy-link": () => void this.copyCommand(state),
      connect: () => void this.connection.reconnect(),
      index: () => void startIndex(this, "full"),
      details: () => new DetailsModal(this).open(),
      search: () => openSearch(this),
      "clear-filter": () => this.panels().forEach((panel) => panel.clearFilter()),
      "show-linked": () => void this.savePanel({ hideLinked: false }),
      again: () => this.renewPanels(),
      settings: () => this.openSettings(),
    };
    acts[action]();
  }

  private async showPanel(): Promise<void> {
    await this.app.workspace.ensureSideLeaf(RELATED_VIEW, "right", { active: true, reveal: true });
  }

  private async startEngine(): Promise<void> {
    const program = findProgram(this.machine.program);
    if (!program) return;
    this.connection.expect();
    try {
      await startEngine(program, dataFolder(this.machine.dataFolder));
    } catch (error) {
      new Notice(`The engine did not start. ${error instanceof Error ? error.message : ""}`);
    }
    await this.connection.reconnect();
  }

  private async copyCommand(state: PanelState): Promise<void> {
    await navigator.clipboard.writeText(wordsFor(state, this.around()).command ?? "");
    new Notice("Copied. Paste it into a terminal.");
  }

  private connectionChanged(): void {
    this.statusBar.show();
    const isReady = this.connection.state.kind === "ready";
    if (isReady && !this.wasReady) void this.hearSettings();
    this.wasReady = isReady;
  }

  private async hearSettings(): Promise<void> {
    try {
      const { data } = await this.connection.call("obsidian_rag_relation_settings", {});
      if (isRecord(data?.["settings"])) this.engine = data["settings"];
    } catch {
      this.engine = {}; // an older engine; the tab shows the usual values
    }
  }

  private panelChanged(): void {
    this.statusBar.showIf(this.panel.showStatusBar);
    this.renewPanels();
  }

  private panels(): RelatedPanel[] {
    const views = this.app.workspace.getLeavesOfType(RELATED_VIEW).map((leaf) => leaf.view);
    return views.filter((view): view is RelatedPanel => view instanceof RelatedPanel);
  }

  private renewPanels(): void {
    for (const panel of this.panels()) panel.renew();
  }

  private loadMachine(): MachineSettings {
    const found: unknown = requireApiVersion("1.8.7") ? this.app.loadLocalStorage(MACHINE_KEY) : null;
    if (!isRecord(found)) return MACHINE_DEFAULTS;
    const { dataFolder: folder, program } = found;
    return { dataFolder: typeof folder === "string" ? folder : "", program: typeof program === "string" ? program : "" };
  }

  private openSettings(): void {
    // The app has no documented way to open a tab of its settings.
    const { setting } = this.app as { setting?: { open(): void; openTabById(id: string): void } };
    setting?.open();
    setting?.openTabById(this.manifest.id);
  }

  private vaultPath(): string {
    const { adapter } = this.app.vault;
    return adapter instanceof FileSystemAdapter ? adapter.getBasePath() : "";
  }
}
