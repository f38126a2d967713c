/** The engine's answers as the plugin uses them. What is not as expected becomes empty, never an exception. */

export interface Problem {
  code: string;
  message: string;
  suggestion: string;
}

export interface Envelope {
  status: string;
  data: Record<string, unknown> | null;
  error: Problem | null;
}

/** The engine said no. */
export class Refused extends Error {
  constructor(readonly problem: Problem) {
    super(problem.message);
  }
}

export interface Passage {
  path: string;
  headings: string[];
  line: number;
  text: string;
}

export interface Signal {
  name: string;
  score: number;
  share: number;
}

export interface RelatedNote {
  path: string;
  title: string;
  score: number;
  signals: Signal[];
  reasons: string[];
  sharedTags: string[];
  tags: string[];
  isLinked: boolean;
  passages: Passage[];
  categories: string[];
}

export interface RelatedAnswer {
  notes: RelatedNote[];
  hiddenLinked: number;
  compared: number;
}

export interface Hit {
  path: string;
  title: string;
  headings: string[];
  line: number;
  text: string;
  score: number;
  terms: string[];
  categories: string[];
  linkId: string;
}

export interface SearchAnswer {
  hits: Hit[];
  isWeak: boolean;
}

export interface KnownVault {
  linkId: string;
  path: string;
  isPrimary: boolean;
}

export interface EngineStatus {
  health: string;
  notes: number;
  passages: number;
  lastSync: string;
  embedder: string;
  problem: Problem | null;
  job: { mode: string; done: number; total: number } | null;
  leftOut: number;
  skipped: { file: string; reason: string }[];
  vaults: KnownVault[];
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function parseEnvelope(value: unknown): Envelope | undefined {
  if (!isRecord(value) || typeof value["status"] !== "string" || !("data" in value)) return undefined;
  const { status, data, error } = value;
  return { status, data: isRecord(data) ? data : null, error: isRecord(error) ? parseProblem(error) : null };
}

function parseProblem(error: Record<string, unknown>): Problem {
  return { code: text(error["code"]), message: text(error["message"]), suggestion: text(error["suggestion"]) };
}

export function parseRelated(data: Record<string, unknown>, linkId: string): RelatedAnswer {
  return {
    notes: records(data["results"]).filter((one) => isOurs(one, linkId)).map(relatedNote),
    hiddenLinked: number(data["hidden_linked"]),
    compared: number(data["compared"]),
  };
}

function relatedNote(one: Record<string, unknown>): RelatedNote {
  const signals = isRecord(one["signals"]) ? Object.entries(one["signals"]) : [];
  return {
    path: text(one["source_file"]),
    title: text(one["title"]),
    score: number(one["score"]),
    signals: signals
      .map(([name, told]) => ({ name, score: number(isRecord(told) ? told["score"] : 0), share: number(isRecord(told) ? told["share"] : 0) }))
      .sort((a, b) => b.share - a.share),
    reasons: texts(one["reasons"]),
    sharedTags: texts(one["shared_tags"]),
    tags: texts(one["tags"]),
    isLinked: one["linked"] === true,
    passages: records(one["passages"]).map(passage),
    categories: texts(one["sensitive_categories"]),
  };
}

function passage(one: Record<string, unknown>): Passage {
  return {
    path: text(one["source_file"]),
    headings: texts(one["heading_path"]),
    line: number(one["start_line"]),
    text: text(one["text"]),
  };
}

export function parseSearch(data: Record<string, unknown>, linkId: string): SearchAnswer {
  const hits = records(data["results"]).filter((one) => isOurs(one, linkId)).map((one) => ({
    path: text(one["source_file"]),
    title: text(one["title"]),
    headings: texts(one["heading_path"]),
    line: number(one["start_line"]),
    text: text(one["chunk_text"]),
    score: number(one["score"]),
    terms: texts(isRecord(one["why"]) ? one["why"]["terms"] : []),
    categories: texts(one["sensitive_categories"]),
    linkId: text(one["link_id"]),
  }));
  return { hits, isWeak: data["is_weak"] === true };
}

/** Answers of an engine with several vaults name theirs; one that does not has only ours. */
function isOurs(one: Record<string, unknown>, linkId: string): boolean {
  const named = text(one["link_id"]);
  return !named || !linkId || named === linkId;
}

export function parseStatus(envelope: Envelope): EngineStatus {
  const data = envelope.data ?? {};
  const job = isRecord(data["active_job"]) ? data["active_job"] : null;
  const progress = job && isRecord(job["progress"]) ? job["progress"] : {};
  return {
    health: text(data["plugin_health"]) || envelope.status,
    notes: number(data["total_docs"]),
    passages: number(data["total_chunks"]),
    lastSync: text(data["last_sync"]),
    embedder: text(data["embedder"]),
    problem: envelope.error,
    job: job && { mode: text(job["mode"]), ...counts(progress) },
    leftOut: number(data["left_out_files"]),
    skipped: records(data["notices"]).map((one) => ({ file: text(one["file"]), reason: text(one["reason"]) })),
    vaults: knownVaults(data),
  };
}

/** How far a job is; a total of 0 is not known yet. */
export function counts(progress: Record<string, unknown>): { done: number; total: number } {
  return { done: number(progress["current"]), total: number(progress["total"]) };
}

function knownVaults(data: Record<string, unknown>): KnownVault[] {
  const listed = records(data["vaults"]).map((one) => ({
    linkId: text(one["link_id"]),
    path: text(one["root_path"]) || text(one["vault_path"]) || text(one["path"]),
    isPrimary: false,
  }));
  const first = { linkId: text(data["link_id"]), path: text(data["vault_path"]), isPrimary: true };
  return [first, ...listed].filter((one) => one.path);
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function number(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

export function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];
}

export function records(value: unknown): Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
