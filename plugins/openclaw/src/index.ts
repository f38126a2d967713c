/** The entry that OpenClaw loads. */

import { definePluginEntry } from "openclaw/plugin-sdk/plugin-entry";

import { register } from "./plugin.ts";

export default definePluginEntry({
  id: "obsidian-rag",
  name: "Obsidian vault",
  description: "Search, read and remember from the user's Obsidian vault, on this machine",
  register,
});
