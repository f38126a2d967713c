/** What this plugin uses of OpenClaw's plugin API, in our own words. */

export interface Logger {
  info(message: string): void;
  warn(message: string): void;
}

export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
  termination: string;
}

export type RunCommand = (
  argv: string[],
  options: { timeoutMs: number; env?: Record<string, string>; signal?: AbortSignal },
) => Promise<CommandResult>;

/** Who asks: the part of a tool factory's context that we look at. */
export interface ToolContext {
  workspaceDir?: string | undefined;
  senderIsOwner?: boolean | undefined;
}

export interface ToolResult {
  content: { type: "text"; text: string }[];
  details: Record<string, unknown>;
}

export interface Tool {
  name: string;
  label: string;
  description: string;
  parameters: Record<string, unknown>;
  catalogMode?: "direct-only";
  execute(toolCallId: string, params: unknown, signal?: AbortSignal): Promise<ToolResult>;
}

export interface ServiceContext {
  logger: Logger;
  serviceHealth?: { reportFailure(error: unknown): void; clearFailure(): void } | undefined;
}

export interface Service {
  id: string;
  start(context: ServiceContext): void;
  stop(context: ServiceContext): Promise<void>;
}

export interface CorpusHit {
  corpus: string;
  path: string;
  title: string;
  kind: string;
  score: number;
  snippet: string;
  startLine: number;
  endLine: number;
  citation: string;
  provenanceLabel: string;
}

export interface CorpusText {
  corpus: string;
  path: string;
  title: string;
  kind: string;
  content: string;
  fromLine: number;
  lineCount: number;
  provenanceLabel: string;
}

export interface Corpus {
  search(asked: { query: string; maxResults?: number }): Promise<CorpusHit[]>;
  get(asked: { lookup: string; fromLine?: number; lineCount?: number }): Promise<CorpusText | null>;
}

export interface Host {
  pluginConfig?: Record<string, unknown> | undefined;
  logger: Logger;
  runtime: { system: { runCommandWithTimeout: RunCommand } };
  registerTool(make: (context: ToolContext) => Tool, options: { name: string }): void;
  registerService(service: Service): void;
  registerMemoryPromptSupplement(build: (asked: { availableTools: Set<string> }) => string[]): void;
  registerMemoryCorpusSupplement(corpus: Corpus): void;
}
