/** The engine's tools, one loop: whatever is in tools.json is registered. */

import type { Answer, Door } from "./door.ts";
import { noteDown } from "./daily.ts";
import { isRecord } from "./envelope.ts";
import type { Host, Tool, ToolContext, ToolResult } from "./host.ts";
import { resultOf } from "./result.ts";
import catalogue from "./tools.json" with { type: "json" };

export const VERSION = catalogue.version;
const MEMORY_STORE = "obsidian_rag_memory_store";
const NOT_THE_OWNER =
  "confirm_sensitive was left out: only the owner of the notes can confirm, and this message is not from them.";

type Described = (typeof catalogue.tools)[number];

export function registerTools(host: Host, door: Door): void {
  for (const tool of catalogue.tools) {
    host.registerTool((context) => offered(tool, door, context), { name: tool.name });
  }
}

function offered(tool: Described, door: Door, context: ToolContext): Tool {
  return {
    name: tool.name,
    label: `Obsidian vault: ${tool.name.replace(/^obsidian_(rag_)?/, "").replaceAll("_", " ")}`,
    description: tool.description,
    parameters: tool.parameters,
    ...(tool.direct ? { catalogMode: "direct-only" as const } : {}),
    execute: async (_toolCallId, params, signal) => await run(tool.name, door, context, params ?? {}, signal),
  };
}

async function run(
  name: string,
  door: Door,
  context: ToolContext,
  params: unknown,
  signal: AbortSignal | undefined,
): Promise<ToolResult> {
  const notices: string[] = [];
  let asked = params;
  if (context.senderIsOwner === false && isRecord(params) && params["confirm_sensitive"] === true) {
    asked = { ...params, confirm_sensitive: false };
    notices.push(NOT_THE_OWNER);
  }
  const answer = await door.ask(name, asked, signal);
  if (name === MEMORY_STORE) await remember(answer, context, params);
  return resultOf(name, answer, VERSION, notices);
}

/** A stored fact goes into the workspace's daily file as well; if that fails, the answer says so and the fact stays. */
async function remember(answer: Answer, context: ToolContext, params: unknown): Promise<void> {
  const data = answer.envelope.data;
  if (data?.["stored"] !== true || context.workspaceDir === undefined || !isRecord(params)) return;
  const fact = { key: String(params["key"]), value: String(params["value"]), source: String(params["source"]) };
  try {
    data["daily_file"] = await noteDown(context.workspaceDir, fact);
  } catch (error) {
    data["daily_file"] = null;
    data["daily_file_error"] = `The fact is stored, but not in the daily memory file: ${String(error)}`;
  }
}
