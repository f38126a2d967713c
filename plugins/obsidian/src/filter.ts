/** The panel's filter: `path:Projects tag:water status=done`, or bare words of a title. */

import type { RelatedNote } from "./answers";

export interface Filter {
  folders: string[];
  tags: string[];
  properties: { key: string; value: string }[];
  words: string[];
}

export function parseFilter(text: string): Filter {
  const filter: Filter = { folders: [], tags: [], properties: [], words: [] };
  for (const part of text.match(/(?:[^\s"]|"[^"]*")+/g) ?? []) {
    const plain = part.replaceAll('"', "");
    const [, name = "", mark = "", value = ""] = /^([^:=]+)([:=])(.*)$/.exec(plain) ?? [];
    if (mark === ":" && (name === "path" || name === "folder")) filter.folders.push(value.replace(/\/+$/, "").toLowerCase());
    else if (mark === ":" && name === "tag") filter.tags.push(value.replace(/^#/, "").toLowerCase());
    else if (plain.startsWith("#")) filter.tags.push(plain.slice(1).toLowerCase());
    else if (mark === "=") filter.properties.push({ key: name.toLowerCase(), value: value.toLowerCase() });
    else filter.words.push(plain.toLowerCase());
  }
  return filter;
}

export function isEmpty(filter: Filter): boolean {
  return !(filter.folders.length || filter.tags.length || filter.properties.length || filter.words.length);
}

/** Whether a note passes; `properties` are those of its frontmatter. A nested tag passes its parent's filter. */
export function passes(filter: Filter, note: RelatedNote, properties: Record<string, unknown>): boolean {
  const path = note.path.toLowerCase();
  const folder = path.slice(0, Math.max(0, path.lastIndexOf("/")));
  const tags = note.tags.map((tag) => tag.toLowerCase());
  const own = new Map(Object.entries(properties).map(([key, value]) => [key.toLowerCase(), values(value)]));
  return (
    filter.folders.every((name) => name === "" ? folder === "" : folder === name || folder.startsWith(`${name}/`)) &&
    filter.tags.every((name) => tags.some((tag) => tag === name || tag.startsWith(`${name}/`))) &&
    filter.properties.every(({ key, value }) => own.get(key)?.includes(value) ?? false) &&
    filter.words.every((word) => path.includes(word) || note.title.toLowerCase().includes(word))
  );
}

function values(value: unknown): string[] {
  const all: unknown[] = Array.isArray(value) ? value : [value];
  return all.map((one) => String(one).toLowerCase());
}
