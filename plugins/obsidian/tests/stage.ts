/** A daemon of a few lines on loopback, and what tests of the connection need around it. */

import http from "http";
import type { AddressInfo } from "net";

import type { Address } from "../src/transport";

Object.assign(globalThis, { window: globalThis });

export type Answer = (path: string, body: unknown, response: http.ServerResponse) => unknown;

export interface Stage {
  address: Address;
  asked: { path: string; body: unknown; headers: http.IncomingHttpHeaders }[];
  close(): Promise<void>;
}

/** Serve JSON: what `answer` returns, or nothing if it has answered itself. */
export async function stage(answer: Answer, token = "a-token"): Promise<Stage> {
  const asked: Stage["asked"] = [];
  const server = http.createServer((request, response) => {
    let text = "";
    request.on("data", (part) => (text += String(part)));
    request.on("end", () => {
      const body: unknown = text ? JSON.parse(text) : undefined;
      asked.push({ path: request.url ?? "", body, headers: request.headers });
      if (request.headers.authorization !== `Bearer ${token}`) {
        response.writeHead(401).end(JSON.stringify({ status: "healthy", data: null, error: null }));
        return;
      }
      const given = answer(request.url ?? "", body, response);
      if (given !== undefined) response.writeHead(200).end(JSON.stringify(given));
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return {
    address: { port: (server.address() as AddressInfo).port, token },
    asked,
    close: () =>
      new Promise((done) => {
        server.closeAllConnections();
        server.close(() => done());
      }),
  };
}

export function envelope(data: unknown, error: unknown = null): Record<string, unknown> {
  return { status: "healthy", data, error, meta: {} };
}

/** Wait until something is so. */
export async function until(isSo: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!isSo()) {
    if (Date.now() > end) throw new Error("waited 20 s");
    await new Promise((done) => setTimeout(done, 5));
  }
}
