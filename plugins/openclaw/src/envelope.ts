/** The one shape of every answer, as the engine defines it, and the failures that only the plugin can see. */

export interface ErrorBody {
  code: string;
  message: string;
  recoverable: boolean;
  suggestion: string;
}

export interface Envelope {
  status: "healthy" | "degraded" | "unavailable";
  data: Record<string, unknown> | null;
  error: ErrorBody | null;
  meta: Record<string, unknown>;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether a parsed JSON document is an answer of the engine, and not of some other program. */
export function isEnvelope(value: unknown): value is Envelope {
  return (
    isRecord(value) &&
    typeof value["status"] === "string" &&
    (value["data"] === null || isRecord(value["data"])) &&
    (value["error"] === null || (isRecord(value["error"]) && typeof value["error"]["code"] === "string")) &&
    isRecord(value["meta"])
  );
}

/** An answer without data: the engine could not be asked. */
export function failure(code: string, message: string, suggestion: string): Envelope {
  return {
    status: "unavailable",
    data: null,
    error: { code, message, recoverable: true, suggestion },
    meta: { query_time_ms: 0, chunks_scanned: 0, index_version: "0", vault_mtime: null },
  };
}

/** A failure as one line for logs and errors. */
export function inWords(envelope: Envelope): string {
  const error = envelope.error;
  return error === null ? envelope.status : `${error.code}: ${error.message} ${error.suggestion}`.trim();
}
