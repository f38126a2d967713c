// The notes of a map and their ties, decoded from `/page/map` (format: relations/map.py).

export const RELATION = 0;
export const LINK = 1;
export const LIKENESS = 2;

export class Graph {
  /** @param {ArrayBuffer} buffer @param {boolean} isScreened titles and tags may be private text */
  constructor(buffer, isScreened) {
    const length = new DataView(buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    /** @type {string} */
    this.version = head.version;
    /** @type {boolean} */
    this.isSettled = head.is_settled;
    /** @type {string[]} */
    this.paths = head.paths;
    this.count = this.paths.length;
    /** @type {string[]} */
    this.names = this.paths.map((path, at) => (!isScreened && head.titles[at]) || nameOf(path));
    /** @type {string[]} */
    this.tags = isScreened ? [] : head.tags;
    /** @type {number[][]} */
    this.tag = isScreened ? this.paths.map(() => []) : head.tag;
    /** @type {string[]} */
    this.vaults = head.vaults;
    /** @type {number[] | null} */
    this.vault = head.vault;
    const places = new Uint16Array(buffer, 4 + length, 2 * this.count);
    this.x = Float32Array.from({ length: this.count }, (_, at) => places[2 * at] * head.unit);
    this.y = Float32Array.from({ length: this.count }, (_, at) => places[2 * at + 1] * head.unit);
    const [relations, links, alike] = head.ties;
    const Numbers = head.is_wide ? Uint32Array : Uint16Array;
    /** Two notes per tie. */
    this.pairs = new Numbers(buffer.slice(4 + length + 4 * this.count));
    /** Where the ties of each kind end. */
    this.ends = [relations, relations + links, relations + links + alike];
    const { count, pairs } = this;
    const ties = pairs.length / 2;
    const most = new Uint32Array(count);
    for (const note of pairs) most[note]++;
    /** How many ties each note has. */
    this.degree = most;
    this.first = new Uint32Array(count + 1);
    for (let at = 0; at < count; at++) this.first[at + 1] = this.first[at] + most[at];
    const next = this.first.slice();
    /** The ties of each note, from `first[note]` on. */
    this.at = new Uint32Array(2 * ties);
    for (let tie = 0; tie < ties; tie++) {
      this.at[next[pairs[2 * tie]]++] = tie;
      this.at[next[pairs[2 * tie + 1]]++] = tie;
    }
    /** Notes with many ties first. */
    this.byDegree = Uint32Array.from({ length: count }, (_, at) => at).sort((a, b) => most[b] - most[a] || a - b);
  }

  /** The kind of a tie. @param {number} tie */
  kind(tie) {
    return tie < this.ends[0] ? RELATION : tie < this.ends[1] ? LINK : LIKENESS;
  }

  /** The notes tied to one, and how. @param {number} note @returns {{note: number, kind: number}[]} */
  near(note) {
    return Array.from(this.at.subarray(this.first[note], this.first[note + 1]), (tie) => ({
      note: this.pairs[2 * tie] === note ? this.pairs[2 * tie + 1] : this.pairs[2 * tie],
      kind: this.kind(tie),
    }));
  }

  /** The link id of a note's vault. @param {number} note */
  vaultOf(note) {
    return this.vaults[this.vault ? this.vault[note] : 0] ?? '';
  }

  /** The number of a note; -1 if it is not there. @param {string} path @param {string | null} [vault] */
  find(path, vault) {
    return this.paths.findIndex((one, at) => one === path && (!vault || this.vaultOf(at) === vault));
  }

  /** Notes whose name or path contains every word, the most tied first. @param {string} text @returns {number[]} */
  search(text) {
    const words = text.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    return Array.from(this.byDegree).filter((at) => {
      const called = `${this.names[at]} ${this.paths[at]}`.toLocaleLowerCase();
      return words.every((word) => called.includes(word));
    });
  }

  /** The corners of the whole map. */
  box() {
    if (!this.count) return { left: 0, top: 0, right: 1, bottom: 1 };
    const box = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
    for (let at = 0; at < this.count; at++) {
      box.left = Math.min(box.left, this.x[at]);
      box.right = Math.max(box.right, this.x[at]);
      box.top = Math.min(box.top, this.y[at]);
      box.bottom = Math.max(box.bottom, this.y[at]);
    }
    return box;
  }
}

/** @param {string} path */
export function nameOf(path) {
  return path.slice(path.lastIndexOf('/') + 1).replace(/\.(md|canvas)$/i, '');
}

/**
 * The colour of each note: the largest groups have one each, the rest share the last.
 * @typedef {{of: Uint8Array, names: string[], sizes: number[]}} Colours
 */
export const MOST_COLOURS = 9;

/** @param {Graph} graph @param {'folder' | 'tag' | 'vault'} by @param {Record<string, string>} vaultNames @returns {Colours} */
export function colours(graph, by, vaultNames) {
  const groups = by === 'tag' ? tagGroups(graph) : by === 'vault' ? graph.paths.map((_, at) => vaultNames[graph.vaultOf(at)] ?? 'Vault') : folderGroups(graph.paths);
  /** @type {Map<string, number>} */
  const sizes = new Map();
  for (const group of groups) if (group) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  const largest = [...sizes].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, MOST_COLOURS);
  const number = new Map(largest.map(([name], at) => [name, at]));
  const of = Uint8Array.from(groups, (group) => number.get(group) ?? MOST_COLOURS);
  const rest = groups.length - largest.reduce((sum, [, size]) => sum + size, 0);
  const names = largest.map(([name]) => name);
  const counts = largest.map(([, size]) => size);
  if (rest) {
    names[MOST_COLOURS] = by === 'tag' ? (sizes.size > MOST_COLOURS ? 'Other or no tag' : 'No tag') : by === 'folder' ? (sizes.size > MOST_COLOURS ? 'Other folders' : 'No folder') : 'Other vaults';
    counts[MOST_COLOURS] = rest;
  }
  return { of, names, sizes: counts };
}

/** For each note, its most common tag. @param {Graph} graph @returns {string[]} */
function tagGroups(graph) {
  const sizes = new Uint32Array(graph.tags.length);
  for (const some of graph.tag) for (const tag of some) sizes[tag]++;
  return graph.tag.map((some) => {
    const best = some.reduce((found, tag) => (found < 0 || sizes[tag] > sizes[found] ? tag : found), -1);
    return best < 0 ? '' : `#${graph.tags[best]}`;
  });
}

/** The folder of each note; a folder with more than half of all notes counts as its subfolders. @param {string[]} paths */
function folderGroups(paths) {
  const parts = paths.map((path) => path.split('/').slice(0, -1));
  const depth = new Uint8Array(paths.length).fill(1);
  const group = (/** @type {number} */ at) => parts[at].slice(0, depth[at]).join('/');
  for (let round = 0; round < 8; round++) {
    /** @type {Map<string, number>} */
    const sizes = new Map();
    for (let at = 0; at < paths.length; at++) sizes.set(group(at), (sizes.get(group(at)) ?? 0) + 1);
    const large = [...sizes].find(([name, size]) => name && size > paths.length / 2);
    if (!large) break;
    let isSplit = false;
    for (let at = 0; at < paths.length; at++) {
      if (group(at) === large[0] && parts[at].length > depth[at]) {
        depth[at]++;
        isSplit = true;
      }
    }
    if (!isSplit) break;
  }
  return paths.map((_, at) => group(at));
}
