/** Server-sent events, taken apart as their text arrives. */

export interface ServerEvent {
  id: string;
  kind: string;
  data: unknown;
}

const MOST_CHARS = 1024 * 1024;

export class SseParser {
  private rest = "";

  constructor(private readonly heard: (event: ServerEvent) => void) {}

  /** Take the next piece of the stream, wherever it was cut. */
  push(text: string): void {
    this.rest += text;
    for (let end = this.rest.indexOf("\n\n"); end >= 0; end = this.rest.indexOf("\n\n")) {
      const block = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + 2);
      this.take(block);
    }
    if (this.rest.length > MOST_CHARS) this.rest = "";
  }

  private take(block: string): void {
    const event: ServerEvent = { id: "", kind: "message", data: undefined };
    const lines: string[] = [];
    for (const line of block.split("\n")) {
      const at = line.indexOf(":");
      if (at <= 0) continue;
      const value = line.slice(at + 1).replace(/^ /, "");
      const name = line.slice(0, at);
      if (name === "id") event.id = value;
      else if (name === "event") event.kind = value;
      else if (name === "data") lines.push(value);
    }
    if (!lines.length) return;
    try {
      event.data = JSON.parse(lines.join("\n"));
    } catch {
      return;
    }
    this.heard(event);
  }
}
