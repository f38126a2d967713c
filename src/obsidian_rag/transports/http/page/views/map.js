// The map: all notes, or the neighbourhood of one (`?note=`); the chosen note is `?at=`.

import { headers, newOrder, Problem } from '../api.js';
import { count, failed, h, icon, iconButton, plural, replace, say, state } from '../dom.js';
import { listen } from '../events.js';
import { isTyping, onKey } from '../keys.js';
import { Drawing } from '../map/draw.js';
import { colours, Graph, LIKENESS, LINK, MOST_COLOURS, RELATION } from '../map/graph.js';
import { go, noteUrl, setTitle } from '../router.js';
import { isScreened } from '../screen.js';

/** @typedef {import('../router.js').Context} Context */

const KINDS = /** @type {[number, string][]} */ ([[RELATION, 'Relations'], [LINK, 'Links'], [LIKENESS, 'Similar']]);
const MOST_LISTED = 60;
const SHEET_PX = 340;
const CAMERA = 'map-camera';
const COLOUR_BY = 'map-colour';
const STEP_PX = 60;
const QUIET_MS = 800;

/** @param {string | null} note @param {string | null} vault @param {AbortSignal} signal */
async function load(note, vault, signal) {
  const asked = note ? `?${new URLSearchParams({ note, ...(vault ? { vault } : {}) })}` : '';
  const response = await fetch(`/page/map${asked}`, { signal, headers: headers() });
  if (!response.ok) throw new Problem((await response.json()).error, response.status);
  return new Graph(await response.arrayBuffer(), isScreened());
}

class MapView {
  /** @param {HTMLElement} main @param {Context} context @param {Graph} graph */
  constructor(main, context, graph) {
    this.context = context;
    this.graph = graph;
    this.note = context.query.get('note');
    this.vault = context.query.get('vault');
    this.canvas = h('canvas', { tabindex: 0, role: 'img', 'aria-label': 'Map of your notes. Arrow keys move, plus and minus zoom, f shows all; the search field beside lists notes.' });
    this.field = h('input', { type: 'search', placeholder: 'Find on the map', 'aria-label': 'Find on the map', 'aria-controls': 'map-found', oninput: () => this.find(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.fieldKey(event) });
    this.found = h('ul', { id: 'map-found', class: 'plain map-found', hidden: true });
    this.by = h('select', { 'aria-label': 'Colour by', onchange: () => this.recolour() });
    this.legend = h('ul', { class: 'plain map-legend', 'aria-label': 'Colours' });
    this.sheet = h('aside', { class: 'map-sheet', 'aria-label': 'Chosen note', hidden: true });
    this.summary = h('p', { class: 'map-told small muted' });
    const tools = h('div', { class: 'map-tools' },
      h('div', { class: 'map-search' }, this.field, this.found),
      h('label', { class: 'row small muted' }, 'Colour by', this.by),
      this.note ? h('a', { class: 'button', href: this.url('at', this.note, this.vault) }, 'Whole vault') : null);
    const zooms = h('div', { class: 'map-zooms' },
      iconButton('plus', 'Zoom in', () => this.drawing.zoom(1.5)),
      h('button', { type: 'button', class: 'icon bare', title: 'Zoom out', 'aria-label': 'Zoom out', onclick: () => this.drawing.zoom(1 / 1.5) }, '−'),
      h('button', { type: 'button', class: 'bare', title: 'Show everything (f)', onclick: () => this.fit() }, 'Fit'));
    this.box = h('div', { class: 'map' }, h('h1', { class: 'unseen' }, this.note ? 'Map around a note' : 'Map'), this.canvas, tools, zooms, h('div', { class: 'map-foot' }, this.legend, this.summary), this.sheet);
    replace(main, this.box);
    this.drawing = new Drawing(this.canvas, this.theme(), graph, context.signal);
    this.offerColours();
    this.colours = this.recolour();
  }

  begin() {
    const { graph } = this;
    const { signal } = this.context;
    this.drawing.resize();
    this.fit({ isKept: false });
    if (!this.note) this.recall();
    const resized = new ResizeObserver(() => this.drawing.resize());
    resized.observe(this.canvas);
    signal.addEventListener('abort', () => resized.disconnect());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.retheme(), { signal });
    this.point();
    onKey(signal, (event) => this.key(event));
    this.summarise();
    const chosen = this.note ?? this.context.query.get('at');
    if (chosen) this.choose(graph.find(chosen, this.vault), { isQuiet: true });
    if (this.note) this.fit({ isKept: false });
    this.box.dataset.ready = 'true';
  }

  theme() {
    const style = getComputedStyle(this.box);
    const colour = (/** @type {string} */ name) => {
      const probe = h('i', { style: { color: `var(${name})` } });
      this.box.append(probe);
      const found = getComputedStyle(probe).color;
      probe.remove();
      return found;
    };
    return {
      background: style.backgroundColor,
      text: colour('--text'),
      link: colour('--map-link'),
      relation: colour('--accent'),
      likeness: colour('--map-likeness'),
      faint: colour('--map-faint'),
      groups: Array.from({ length: MOST_COLOURS + 1 }, (_, at) => colour(`--map-${at}`)),
    };
  }

  retheme() {
    this.drawing.theme = this.theme();
    this.drawing.redraw();
  }

  offerColours() {
    const offered = [['folder', 'folder'], ['tag', 'tag'], ...(this.graph.vaults.length > 1 ? [['vault', 'vault']] : [])];
    const wanted = localStorage.getItem(COLOUR_BY) ?? (this.graph.vaults.length > 1 ? 'vault' : 'folder');
    replace(this.by, offered.map(([value, words]) => h('option', { value, selected: value === wanted }, words)));
  }

  /** @returns {import('../map/graph.js').Colours} */
  recolour() {
    const by = /** @type {'folder' | 'tag' | 'vault'} */ (this.by.value);
    localStorage.setItem(COLOUR_BY, by);
    const names = Object.fromEntries(this.context.start.vaults.map((/** @type {any} */ vault) => [vault.id ?? '', vault.name]));
    const found = (this.colours = colours(this.graph, by, names));
    this.drawing.colour = found.of;
    const rows = found.names.map((name, at) => h('li', {}, h('button', { type: 'button', class: 'bare small', 'aria-pressed': 'false', onclick: (/** @type {Event} */ event) => this.markGroup(at, /** @type {HTMLElement} */ (event.currentTarget)) }, h('i', { class: `map-swatch c${at}` }), h('span', {}, name), h('span', { class: 'muted' }, count(found.sizes[at])))));
    replace(this.legend, rows.filter(Boolean));
    this.drawing.redraw();
    return found;
  }

  /** Dim all groups but one, or show all again. @param {number} group @param {HTMLElement} button */
  markGroup(group, button) {
    const isOn = button.getAttribute('aria-pressed') === 'true';
    for (const one of this.legend.querySelectorAll('button')) one.setAttribute('aria-pressed', 'false');
    button.setAttribute('aria-pressed', String(!isOn));
    this.field.value = '';
    this.found.hidden = true;
    this.mark(isOn ? null : this.graph.paths.flatMap((_, at) => (this.colours.of[at] === group ? [at] : [])));
  }

  /** @param {number[] | null} notes */
  mark(notes) {
    this.drawing.marked = notes ? new Set(notes) : null;
    if (notes) this.unchoose();
    this.drawing.show();
  }

  summarise() {
    const { graph } = this;
    const [relations, links, similar] = [graph.ends[0], graph.ends[1] - graph.ends[0], graph.ends[2] - graph.ends[1]];
    const parts = [plural(graph.count, 'note'), links && plural(links, 'link'), relations && plural(relations, 'relation'), similar && `${count(similar)} similar`];
    replace(this.summary, parts.filter(Boolean).join(' · '), graph.isSettled ? '' : ' · being laid out');
  }

  // Search

  find() {
    const text = this.field.value.trim();
    const notes = this.graph.search(text);
    for (const one of this.legend.querySelectorAll('button')) one.setAttribute('aria-pressed', 'false');
    this.mark(text ? notes : null);
    this.found.hidden = !text;
    const rows = notes.slice(0, MOST_LISTED).map((at) => h('li', {}, this.noteButton(at)));
    replace(this.found, rows.length ? rows : h('li', { class: 'muted small' }, 'No note on the map has that name.'));
    if (text) say(plural(notes.length, 'note') + ' found');
  }

  /** @param {KeyboardEvent} event */
  fieldKey(event) {
    if (event.key === 'Escape') {
      this.field.value = '';
      this.find();
      this.canvas.focus();
    } else if (event.key === 'Enter' || event.key === 'ArrowDown') {
      const first = /** @type {HTMLElement | null} */ (this.found.querySelector('button'));
      if (event.key === 'Enter') first?.click();
      else first?.focus();
    } else return;
    event.preventDefault();
  }

  /** @param {number} at */
  noteButton(at) {
    const path = this.graph.paths[at];
    const folder = path.slice(0, path.lastIndexOf('/') + 1);
    return h('button', { type: 'button', class: 'bare map-note', onclick: () => this.walk(at), onmouseenter: () => this.hover(at), onmouseleave: () => this.hover(-1), onfocus: () => this.hover(at), onblur: () => this.hover(-1) }, h('i', { class: `map-swatch c${this.colours.of[at]}` }), h('span', {}, this.graph.names[at]), folder && h('span', { class: 'muted small' }, folder.slice(0, -1)));
  }

  /** The address of this view with a note. @param {'note' | 'at'} as @param {string} path @param {string | null} [vault] */
  url(as, path, vault) {
    return `/map?${new URLSearchParams({ [as]: path, ...(vault ? { vault } : {}) })}`;
  }

  /** @param {'note' | 'at'} as @param {number} at */
  urlOf(as, at) {
    return this.url(as, this.graph.paths[at], this.graph.vaults.length > 1 || this.vault ? this.graph.vaultOf(at) : null);
  }

  // Choosing

  /** @param {number} at */
  hover(at) {
    if (this.drawing.hovered === at) return;
    this.drawing.hovered = at;
    this.canvas.style.cursor = at >= 0 ? 'pointer' : 'grab';
    this.drawing.show();
  }

  /** Go to a note: choose it, or in a neighbourhood move there. @param {number} at */
  walk(at) {
    if (this.note && at !== this.graph.find(this.note, this.vault)) {
      go(this.urlOf('note', at));
      return;
    }
    this.found.hidden = true;
    this.field.value = '';
    this.choose(at);
  }

  /** @param {number} at @param {{isQuiet?: boolean}} [options] */
  choose(at, { isQuiet = false } = {}) {
    if (at < 0) return;
    this.drawing.marked = null;
    this.hover(-1);
    this.drawing.chosen = at;
    this.showSheet(at);
    this.centre(at);
    if (!this.note) history.replaceState(history.state, '', this.urlOf('at', at));
    setTitle(`${this.graph.names[at]} – map`);
    if (!isQuiet) say(`${this.graph.names[at]}, ${plural(this.graph.degree[at], 'tie')}`);
  }

  unchoose() {
    if (this.drawing.chosen < 0) return;
    this.drawing.chosen = -1;
    this.sheet.hidden = true;
    if (!this.note) history.replaceState(history.state, '', '/map');
    setTitle('Map');
    this.drawing.show();
  }

  /** Centre a note in the part that the sheet does not cover. @param {number} at */
  centre(at) {
    const { drawing } = this;
    const isNarrow = drawing.width < 640;
    const seen = drawing.seen(at);
    const x = (drawing.width - (isNarrow ? 0 : SHEET_PX)) / 2;
    const y = isNarrow ? drawing.height * 0.25 : drawing.height / 2;
    const inside = seen.x > 40 && seen.x < 2 * x - 120 && seen.y > 40 && seen.y < 2 * y - 40;
    if (!inside) drawing.pan(x - seen.x, y - seen.y);
    drawing.show();
  }

  /** @param {number} at */
  showSheet(at) {
    const { graph } = this;
    const near = graph.near(at).sort((a, b) => graph.degree[b.note] - graph.degree[a.note]);
    const path = graph.paths[at];
    const vault = graph.vaultOf(at) || this.context.start.vaults[0]?.id || '';
    const lists = KINDS.map(([kind, words]) => {
      const some = near.filter((one) => one.kind === kind);
      const more = some.length - MOST_LISTED;
      return some.length ? h('section', {}, h('h3', {}, words, ' ', h('span', { class: 'muted' }, count(some.length))), h('ul', { class: 'plain' }, some.slice(0, MOST_LISTED).map((one) => h('li', {}, this.noteButton(one.note)))), more > 0 && h('p', { class: 'muted small' }, `and ${count(more)} more`)) : null;
    });
    replace(this.sheet,
      h('header', {}, h('div', {}, h('h2', {}, graph.names[at]), h('p', { class: 'muted small' }, path)), iconButton('close', 'Close', () => this.close())),
      graph.tag[at].length > 0 && h('p', { class: 'row' }, graph.tag[at].slice(0, 12).map((tag) => h('span', { class: 'chip' }, `#${graph.tags[tag]}`))),
      h('p', { class: 'row' },
        h('a', { class: 'button primary', href: noteUrl(vault, path) }, icon('open'), 'Open note'),
        this.note === path ? null : h('a', { class: 'button', href: this.urlOf('note', at) }, 'Neighbourhood')),
      near.length ? lists : h('p', { class: 'muted' }, 'No other note is connected to it.'));
    this.sheet.hidden = false;
    this.sheet.scrollTop = 0;
  }

  close() {
    this.unchoose();
    this.canvas.focus();
  }

  // Moving

  /** Show everything. @param {{isKept?: boolean}} [options] */
  fit({ isKept = true } = {}) {
    const isWide = this.drawing.width >= 900;
    this.drawing.fit(isWide ? this.legend.offsetWidth : 0, isWide && this.drawing.chosen >= 0 ? SHEET_PX : 0);
    if (isKept) this.remember();
  }

  remember() {
    if (!this.note) localStorage.setItem(CAMERA, JSON.stringify({ ...this.drawing.camera, of: this.context.start.vaults[0]?.path }));
  }

  recall() {
    try {
      const kept = JSON.parse(localStorage.getItem(CAMERA) ?? 'null');
      if (kept?.of === this.context.start.vaults[0]?.path && [kept.x, kept.y, kept.zoom].every(Number.isFinite)) this.drawing.camera = { x: kept.x, y: kept.y, zoom: kept.zoom };
    } catch {
      // The stored value is not ours.
    }
    this.drawing.redraw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (isTyping(event.target)) return false;
    const { drawing } = this;
    const isOnMap = event.target === this.canvas || event.target === document.body;
    const moves = /** @type {Record<string, [number, number]>} */ ({ ArrowLeft: [STEP_PX, 0], ArrowRight: [-STEP_PX, 0], ArrowUp: [0, STEP_PX], ArrowDown: [0, -STEP_PX] });
    if (event.key === 'f') this.fit();
    else if (event.key === '+' || event.key === '=') drawing.zoom(1.3);
    else if (event.key === '-') drawing.zoom(1 / 1.3);
    else if (event.key === 'Escape' && drawing.chosen >= 0) this.close();
    else if (event.key === 'Escape' && drawing.marked) this.mark(null);
    else if (moves[event.key] && isOnMap) drawing.pan(...moves[event.key]);
    else return false;
    this.remember();
    return true;
  }

  point() {
    const { canvas, drawing } = this;
    const { signal } = this.context;
    /** @type {Map<number, {x: number, y: number}>} */
    const held = new Map();
    let moved = 0;
    const at = (/** @type {PointerEvent | WheelEvent} */ event) => ({ x: event.offsetX, y: event.offsetY });
    canvas.addEventListener('pointerdown', (event) => {
      canvas.setPointerCapture(event.pointerId);
      held.set(event.pointerId, at(event));
      moved = 0;
    }, { signal });
    canvas.addEventListener('pointermove', (event) => {
      const before = held.get(event.pointerId);
      const now = at(event);
      if (!before) {
        if (event.pointerType !== 'touch') this.hover(drawing.hit(now.x, now.y));
        return;
      }
      if (held.size === 2) pinch(drawing, held, event.pointerId, now);
      else if (held.size === 1) drawing.pan(now.x - before.x, now.y - before.y);
      moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
      if (moved > 4) this.hover(-1);
      held.set(event.pointerId, now);
    }, { signal });
    const release = (/** @type {PointerEvent} */ event) => {
      if (held.delete(event.pointerId) && event.type === 'pointerup' && moved <= 4 && !held.size) {
        const note = drawing.hit(event.offsetX, event.offsetY, event.pointerType === 'touch' ? 22 : 8);
        if (note >= 0) this.walk(note);
        else this.close();
      }
      this.remember();
    };
    canvas.addEventListener('pointerup', release, { signal });
    canvas.addEventListener('pointercancel', release, { signal });
    canvas.addEventListener('pointerleave', () => this.hover(-1), { signal });
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      drawing.zoom(Math.exp(-Math.sign(event.deltaY) * Math.min(Math.abs(event.deltaY), 100) * 0.003), event.offsetX, event.offsetY);
      this.remember();
    }, { signal, passive: false });
  }

  /** Show a newer layout, and keep what is chosen. @param {Graph} graph */
  renew(graph) {
    const chosen = this.drawing.chosen >= 0 ? this.graph.paths[this.drawing.chosen] : null;
    this.graph = this.drawing.graph = graph;
    this.hover(-1);
    this.drawing.chosen = -1;
    this.recolour();
    this.summarise();
    if (this.field.value) this.find();
    if (chosen) {
      const at = graph.find(chosen);
      this.drawing.chosen = at;
      if (at >= 0) this.showSheet(at);
      else this.sheet.hidden = true;
    }
    this.drawing.redraw();
  }
}

/** @param {Drawing} drawing @param {Map<number, {x: number, y: number}>} held @param {number} id @param {{x: number, y: number}} now */
function pinch(drawing, held, id, now) {
  const before = /** @type {{x: number, y: number}} */ (held.get(id));
  const other = /** @type {{x: number, y: number}} */ ([...held].find(([one]) => one !== id)?.[1]);
  const apart = (/** @type {{x: number, y: number}} */ one) => Math.max(Math.hypot(one.x - other.x, one.y - other.y), 1);
  drawing.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  drawing.zoom(apart(now) / apart(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
}

/** @param {MapView} map */
function follow(map) {
  let timer = 0;
  const order = newOrder();
  const again = (/** @type {number} */ wait) => {
    clearTimeout(timer);
    timer = window.setTimeout(async () => {
      const isNews = order();
      try {
        const graph = await load(map.note, map.vault, map.context.signal);
        if (!isNews()) return;
        if (graph.version !== map.graph.version || graph.isSettled !== map.graph.isSettled) map.renew(graph);
      } catch {
        // Keep the map; the next event loads it again.
      }
    }, wait);
  };
  const ends = [
    listen('map', () => again(0)),
    listen('relations', () => again(QUIET_MS)),
    listen('job', (job) => job.status === 'completed' && again(QUIET_MS)),
    listen('ready', () => again(QUIET_MS)),
  ];
  return () => {
    clearTimeout(timer);
    for (const end of ends) end();
  };
}

/** @type {import('../router.js').View} */
export const view = {
  title: 'Map',
  async render(main, context) {
    const timer = setTimeout(() => replace(main, h('div', { class: 'column' }, state('The map is being drawn.', 'The first time this takes a few seconds.'))), 400);
    context.signal.addEventListener('abort', () => clearTimeout(timer));
    let graph;
    try {
      graph = await load(context.query.get('note'), context.query.get('vault'), context.signal);
    } catch (error) {
      if (!context.signal.aborted) replace(main, h('div', { class: 'column' }, failed(error, () => go(location.pathname + location.search, { replace: true }))));
      return;
    } finally {
      clearTimeout(timer);
    }
    if (!graph.count) {
      replace(main, h('div', { class: 'column' }, h('h1', {}, 'Map'), state('There is nothing to draw yet.', 'Notes appear here once they are indexed.', [h('a', { class: 'button', href: '/health' }, 'See the progress')])));
      return;
    }
    const map = new MapView(main, context, graph);
    map.begin();
    return follow(map);
  },
};
