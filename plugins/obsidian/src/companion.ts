/** What the parts of the plugin know of each other. */

import type { App } from "obsidian";

import type { Connection } from "./connection";
import type { MachineSettings, PanelSettings } from "./settings";
import type { ActionId, PanelState, Surroundings } from "./states";

export interface Companion {
  app: App;
  connection: Connection;
  panel: PanelSettings;
  machine: MachineSettings;
  /** The engine's settings about related notes, as last heard. */
  engine: Record<string, unknown>;
  savePanel(changes: Partial<PanelSettings>): Promise<void>;
  saveMachine(changes: Partial<MachineSettings>): Promise<void>;
  saveEngine(changes: Record<string, unknown>): Promise<void>;
  around(): Surroundings;
  act(action: ActionId, state: PanelState): void;
}
