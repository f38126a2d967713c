/** The settings tab: the one table, as definitions for apps from 1.13 on and as controls for older ones. */

import { type App, type Plugin, PluginSettingTab, Setting, type SettingControl, type SettingDefinitionItem } from "obsidian";

import type { Companion } from "./companion";
import { ROWS, type Row, fault, folderOffers, toControl, toEngine } from "./settings";
import { stateOf } from "./related_feed";
import { wordsFor } from "./states";

const GROUPS = ["Panel", "Related notes", "Weights", "Connection"] as const;
const ENGINE_OFF = "Start the engine to change this.";

export class CompanionSettingTab extends PluginSettingTab {
  constructor(app: App, plugin: Plugin, private readonly companion: Companion) {
    super(app, plugin);
  }

  /** For apps from 1.13 on. Runs when the tab is registered too, so it asks nobody. */
  override getSettingDefinitions(): SettingDefinitionItem[] {
    return GROUPS.map((group) => ({
      type: "group",
      heading: group,
      items: ROWS.filter((row) => row.group === group).map((row) => ({
        name: row.name,
        desc: row.desc,
        disabled: () => this.isOutOfReach(row),
        control: this.control(row),
      })),
    }));
  }

  override getControlValue(key: string): unknown {
    const row = ROWS.find((one) => one.key === key);
    return row && toControl(row, this.stored(row));
  }

  override async setControlValue(key: string, value: unknown): Promise<void> {
    const row = ROWS.find((one) => one.key === key);
    if (row && !fault(row, value)) await this.save(row, value);
  }

  /** For apps before 1.13. */
  override display(): void {
    this.containerEl.empty();
    for (const group of GROUPS) {
      new Setting(this.containerEl).setName(group).setHeading();
      for (const row of ROWS.filter((one) => one.group === group)) this.row(row);
    }
  }

  private control(row: Row): SettingControl {
    const { control } = row;
    switch (control.type) {
      case "toggle":
        return { type: "toggle", key: row.key };
      case "choice":
        return { type: "dropdown", key: row.key, options: control.options };
      default:
        return {
          type: "text",
          key: row.key,
          placeholder: placeholderOf(row),
          validate: (value: string) => fault(row, value),
        };
    }
  }

  private row(row: Row): void {
    const setting = new Setting(this.containerEl).setName(row.name).setDesc(row.desc);
    const value = toControl(row, this.stored(row));
    const { control } = row;
    const change = (next: unknown): void => void this.change(setting, row, next);
    if (control.type === "toggle") setting.addToggle((toggle) => toggle.setValue(value === true).onChange(change));
    else if (control.type === "choice") {
      setting.addDropdown((choice) => choice.addOptions(control.options).setValue(String(value)).onChange(change));
    } else {
      setting.addText((text) => {
        text.setPlaceholder(placeholderOf(row)).setValue(String(value));
        // When the field loses focus, not at each key: half a number is invalid.
        text.inputEl.addEventListener("change", () => change(text.getValue()));
        text.inputEl.setAttr("aria-label", row.name);
        if (control.type === "folders") this.completeFolders(text.inputEl);
      });
    }
    if (this.isOutOfReach(row)) setting.setDisabled(true).setDesc(`${row.desc} ${ENGINE_OFF}`);
  }

  /** Folders of the vault are offered while one types. */
  private completeFolders(input: HTMLInputElement): void {
    const list = this.containerEl.createEl("datalist", { attr: { id: "rag-companion-folders" } });
    const offer = () => {
      list.empty();
      const folders = this.app.vault.getAllFolders().map((folder) => folder.path);
      for (const value of folderOffers(input.value, folders)) list.createEl("option", { value });
    };
    offer();
    input.addEventListener("input", offer);
    input.setAttr("list", list.id);
  }

  private async change(setting: Setting, row: Row, value: unknown): Promise<void> {
    let wrong = fault(row, value);
    if (!wrong) {
      try {
        await this.save(row, value);
      } catch (error) {
        wrong = wordsFor(stateOf(error), this.companion.around()).title;
      }
    }
    setting.setDesc(wrong ? `${row.desc} ${wrong}` : row.desc);
    setting.descEl.toggleClass("mod-warning", Boolean(wrong));
  }

  private isOutOfReach(row: Row): boolean {
    return row.keeper === "engine" && this.companion.connection.state.kind !== "ready";
  }

  private stored(row: Row): unknown {
    const { panel, machine, engine } = this.companion;
    const places: Record<string, unknown> = { ...panel, ...machine, ...engine };
    return places[row.key];
  }

  private async save(row: Row, value: unknown): Promise<void> {
    if (row.keeper === "engine") await this.companion.saveEngine({ [row.key]: toEngine(row, value) });
    else if (row.keeper === "panel") await this.companion.savePanel({ [row.key]: value });
    else await this.companion.saveMachine({ [row.key]: value });
  }
}

function placeholderOf(row: Row): string {
  if (row.control.type === "text") return row.control.placeholder ?? "";
  return row.control.type === "folders" ? "Templates, Archive" : "";
}
