/** Puts the parts together and hands them to OpenClaw. */

import { corpusOf } from "./corpus.ts";
import { Door } from "./door.ts";
import type { Host, RunCommand } from "./host.ts";
import { keeperOf } from "./keeper.ts";
import { Launcher } from "./launcher.ts";
import { dataFolder } from "./presence.ts";
import { protocolFor } from "./protocol.ts";
import { settingsFrom } from "./settings.ts";
import { registerTools } from "./tools.ts";

/** OpenClaw calls this several times and for several reasons: nothing happens here but registration. */
export function register(host: Host): void {
  const settings = settingsFrom(host.pluginConfig);
  const folder = dataFolder(settings.home);
  const run: RunCommand = (argv, options) => host.runtime.system.runCommandWithTimeout(argv, options);
  const launcher = new Launcher(run, settings, folder);
  const door = new Door(folder, launcher, settings);
  registerTools(host, door);
  host.registerService(keeperOf(door, launcher, settings));
  if (settings.promptProtocol) {
    host.registerMemoryPromptSupplement(({ availableTools }) => protocolFor(availableTools));
  }
  if (settings.memoryCorpus) host.registerMemoryCorpusSupplement(corpusOf(door));
}
