/**
 * Requests to the engine over loopback. Node's http and not `requestUrl`: a request must have a time-out and an end,
 * events arrive as a stream, and Node sends neither an Origin nor Sec-Fetch headers, which the engine would refuse.
 */

import http from "http";

import { SseParser, type ServerEvent } from "./sse";

export interface Address {
  port: number;
  token: string;
}

export interface Asked {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
  timeoutMs: number;
  signal?: AbortSignal | undefined;
}

export interface Reply {
  status: number;
  body: unknown;
}

export interface Listener {
  /** The stream is open. */
  opened(): void;
  heard(event: ServerEvent): void;
  /** The stream has ended, for whatever reason; nothing follows. */
  ended(): void;
}

/** How the plugin reaches the engine; the tests' browser has one over fetch. */
export interface Transport {
  request(to: Address, asked: Asked): Promise<Reply>;
  /** Listen to the engine's events; returns what ends that. */
  listen(to: Address, lastId: string, listener: Listener): () => void;
}

/** Nobody answers there, or not in time, or not as the engine does. */
export class Unreachable extends Error {
  constructor(readonly reason: "refused" | "slow" | "foreign") {
    super(`The engine cannot be reached (${reason}).`);
  }
}

/** The asker has lost interest. */
export class Cancelled extends Error {}

const MOST_BYTES = 32 * 1024 * 1024;

export class NodeTransport implements Transport {
  request(to: Address, asked: Asked): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (asked.signal?.aborted) {
        reject(new Cancelled());
        return;
      }
      const body = asked.body === undefined ? undefined : JSON.stringify(asked.body);
      const request = http.request(
        { ...target(to, asked.path), method: asked.method, headers: headers(to, body) },
        (response) => {
          const parts: Buffer[] = [];
          let size = 0;
          response.on("data", (part: Buffer) => {
            size += part.length;
            if (size > MOST_BYTES) request.destroy(new Unreachable("foreign"));
            parts.push(part);
          });
          response.on("error", fail);
          response.on("end", () => {
            finish();
            try {
              resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(parts).toString("utf8")) });
            } catch {
              reject(new Unreachable("foreign"));
            }
          });
        },
      );
      const limit = window.setTimeout(() => request.destroy(new Unreachable("slow")), asked.timeoutMs);
      const cancel = (): void => void request.destroy(new Cancelled());
      const finish = (): void => {
        window.clearTimeout(limit);
        asked.signal?.removeEventListener("abort", cancel);
      };
      function fail(error: Error): void {
        finish();
        reject(error instanceof Unreachable || error instanceof Cancelled ? error : new Unreachable("refused"));
      }
      asked.signal?.addEventListener("abort", cancel);
      request.on("error", fail);
      request.end(body);
    });
  }

  listen(to: Address, lastId: string, listener: Listener): () => void {
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      listener.ended();
    };
    const parser = new SseParser((event) => listener.heard(event));
    const extra = lastId ? { "Last-Event-ID": lastId } : {};
    const request = http.request(
      { ...target(to, "/events"), method: "GET", headers: { ...headers(to, undefined), ...extra } },
      (response) => {
        if (response.statusCode !== 200) {
          request.destroy();
          return;
        }
        listener.opened();
        response.setEncoding("utf8");
        response.on("data", (text: string) => parser.push(text));
        response.on("error", end);
        response.on("end", end);
      },
    );
    request.on("error", end);
    request.on("close", end);
    request.end();
    return () => {
      isOver = true;
      request.destroy();
    };
  }
}

function target(to: Address, path: string): http.RequestOptions {
  // A connection of its own each time: a kept one would hold a stopped engine's socket.
  return { host: "127.0.0.1", port: to.port, path, agent: false };
}

function headers(to: Address, body: string | undefined): http.OutgoingHttpHeaders {
  const sent: http.OutgoingHttpHeaders = { Authorization: `Bearer ${to.token}`, "x-obsidian-rag-caller": "owner" };
  if (body !== undefined) {
    sent["Content-Type"] = "application/json";
    sent["Content-Length"] = Buffer.byteLength(body);
  }
  return sent;
}
