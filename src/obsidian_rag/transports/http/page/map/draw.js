// Draws a map on a canvas. While it moves, a picture larger than the view is moved; the map is
// redrawn when it rests (30,000 lines take a tenth of a second).

import { LIKENESS, LINK, RELATION } from './graph.js';

/** @typedef {import('./graph.js').Graph} Graph */
/** @typedef {{x: number, y: number, zoom: number}} Camera the middle of the view, and pixels per unit */
/**
 * @typedef {object} Theme
 * @property {string} background
 * @property {string} text
 * @property {string} link
 * @property {string} relation
 * @property {string} likeness
 * @property {string} faint likeness, while no note is chosen
 * @property {string[]} groups
 */

const REST_MS = 120;
const LARGER = 1.6;
const MOST_LINES_MOVING = 3000;
const MOST_DOTTED = 1500;
const MOST_LABELS = 140;
const LABEL_PX = 12;
const SMALL_PX = 2.6;
const LEAST_ZOOM = 0.5;
const MOST_ZOOM = 120;

export class Drawing {
  /** @type {Graph} */
  graph;
  /** @type {Camera} */
  camera = { x: 0, y: 0, zoom: 1 };
  /** @type {Uint8Array} */
  colour = new Uint8Array();
  /** Notes that stand out while the rest is dimmed; null for none. @type {Set<number> | null} */
  marked = null;
  /** @type {number} */
  hovered = -1;
  /** @type {number} */
  chosen = -1;

  /** @param {HTMLCanvasElement} canvas @param {Theme} theme @param {Graph} graph @param {AbortSignal} signal */
  constructor(canvas, theme, graph, signal) {
    this.canvas = canvas;
    this.theme = theme;
    this.graph = graph;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', { alpha: false }));
    this.layer = new OffscreenCanvas(1, 1);
    /** @type {Camera | null} */
    this.drawnFor = null;
    this.isQuick = false;
    this.restTimer = 0;
    this.frame = 0;
    this.ratio = 1;
    this.width = 1;
    this.height = 1;
    this.fitted = 1;
    signal.addEventListener('abort', () => {
      clearTimeout(this.restTimer);
      cancelAnimationFrame(this.frame);
    });
  }

  /** Take the size of the canvas on the page. */
  resize() {
    const box = this.canvas.getBoundingClientRect();
    this.ratio = Math.min(devicePixelRatio || 1, 2);
    this.width = Math.max(box.width, 1);
    this.height = Math.max(box.height, 1);
    this.canvas.width = Math.round(this.width * this.ratio);
    this.canvas.height = Math.round(this.height * this.ratio);
    this.layer = new OffscreenCanvas(Math.round(this.canvas.width * LARGER), Math.round(this.canvas.height * LARGER));
    this.redraw();
  }

  /** Show everything. @param {number} [left] @param {number} [right] pixels at the sides that something covers */
  fit(left = 0, right = 0) {
    const box = this.graph.box();
    const width = Math.max(box.right - box.left, 4);
    const height = Math.max(box.bottom - box.top, 4);
    this.fitted = Math.min((this.width - left - right - 64) / width, (this.height - 112) / height, 70);
    this.camera = { x: (box.left + box.right + (right - left) / this.fitted) / 2, y: (box.top + box.bottom) / 2, zoom: this.fitted };
    this.redraw();
  }

  /** Redraw everything. */
  redraw() {
    this.drawnFor = null;
    this.show();
  }

  /** Draw the next frame. */
  show() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.#draw());
  }

  /** Move the view. @param {number} dx @param {number} dy in pixels */
  pan(dx, dy) {
    this.camera = { ...this.camera, x: this.camera.x - dx / this.camera.zoom, y: this.camera.y - dy / this.camera.zoom };
    this.#rest();
    this.show();
  }

  /** Zoom, with one point of the view staying where it is. @param {number} by @param {number} [px] @param {number} [py] */
  zoom(by, px = this.width / 2, py = this.height / 2) {
    const zoom = Math.min(Math.max(this.camera.zoom * by, this.fitted * LEAST_ZOOM), MOST_ZOOM);
    const at = this.place(px, py);
    this.camera = { x: at.x - (px - this.width / 2) / zoom, y: at.y - (py - this.height / 2) / zoom, zoom };
    this.#rest();
    this.show();
  }

  /** The point on the map of a point in the view. @param {number} px @param {number} py */
  place(px, py) {
    return { x: this.camera.x + (px - this.width / 2) / this.camera.zoom, y: this.camera.y + (py - this.height / 2) / this.camera.zoom };
  }

  /** The point in the view of a note. @param {number} note */
  seen(note) {
    return { x: (this.graph.x[note] - this.camera.x) * this.camera.zoom + this.width / 2, y: (this.graph.y[note] - this.camera.y) * this.camera.zoom + this.height / 2 };
  }

  /** The note at a point of the view; -1 for none. @param {number} px @param {number} py @param {number} reach in pixels */
  hit(px, py, reach = 6) {
    const { x, y } = this.place(px, py);
    let best = -1;
    let least = Infinity;
    for (let at = 0; at < this.graph.count; at++) {
      const away = Math.hypot(this.graph.x[at] - x, this.graph.y[at] - y) * this.camera.zoom - this.radius(at);
      if (away < Math.min(least, reach)) {
        best = at;
        least = away;
      }
    }
    return best;
  }

  /** How large a note is drawn, in pixels. @param {number} note */
  radius(note) {
    const grown = Math.min(Math.max(Math.sqrt(this.camera.zoom / 14), 0.55), 2);
    return Math.min((1.5 + Math.sqrt(this.graph.degree[note]) * 0.6) * grown, 14);
  }

  #rest() {
    clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => this.redraw(), REST_MS);
  }

  #draw() {
    this.frame = 0;
    if (!this.drawnFor) this.#paintLayer(false);
    else if (!this.#covers()) this.#paintLayer(true);
    const { context: c, camera, drawnFor, layer, ratio } = this;
    const from = /** @type {Camera} */ (drawnFor ?? this.drawnFor);
    const scale = camera.zoom / from.zoom;
    const focus = this.#focus();
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = this.theme.background;
    c.fillRect(0, 0, this.canvas.width, this.canvas.height);
    c.globalAlpha = focus ? 0.18 : 1;
    const width = layer.width * scale;
    const height = layer.height * scale;
    const x = (from.x - camera.x) * camera.zoom * ratio + (this.canvas.width - width) / 2;
    const y = (from.y - camera.y) * camera.zoom * ratio + (this.canvas.height - height) / 2;
    c.drawImage(layer, x, y, width, height);
    c.globalAlpha = 1;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (focus) this.#paintFocus(focus);
  }

  /** Whether the picture that was drawn covers the view. */
  #covers() {
    const from = /** @type {Camera} */ (this.drawnFor);
    const half = (/** @type {number} */ size) => (size * LARGER) / 2 / from.zoom - size / 2 / this.camera.zoom;
    return Math.abs(from.x - this.camera.x) <= half(this.width) + 1e-6 && Math.abs(from.y - this.camera.y) <= half(this.height) + 1e-6;
  }

  /** The notes that stand out, and the note whose lines do. */
  #focus() {
    const middle = this.hovered >= 0 ? this.hovered : this.chosen;
    if (middle >= 0) {
      // Links are many: the names of other ties come first.
      const near = this.graph.near(middle).sort((a, b) => +(a.kind === LINK) - +(b.kind === LINK));
      return { middle, notes: [middle, ...near.map((one) => one.note)] };
    }
    return this.marked ? { middle: -1, notes: [...this.marked] } : null;
  }

  /** @param {boolean} isQuick fewer lines and no names */
  #paintLayer(isQuick) {
    const { layer, ratio, camera } = this;
    const c = /** @type {OffscreenCanvasRenderingContext2D} */ (layer.getContext('2d', { alpha: false }));
    this.drawnFor = { ...camera };
    const width = this.width * LARGER;
    const height = this.height * LARGER;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = this.theme.background;
    c.fillRect(0, 0, width, height);
    const view = this.#positions(width, height);
    this.#paintTies(c, view, isQuick);
    this.#paintNotes(c, view);
    if (!isQuick) this.#paintNames(c, view, Array.from(this.graph.byDegree), width, height);
  }

  /** The position of each note in a picture, and whether it is inside. @param {number} width @param {number} height */
  #positions(width, height) {
    const { graph, camera } = this;
    const x = new Float32Array(graph.count);
    const y = new Float32Array(graph.count);
    const inside = new Uint8Array(graph.count);
    for (let at = 0; at < graph.count; at++) {
      x[at] = (graph.x[at] - camera.x) * camera.zoom + width / 2;
      y[at] = (graph.y[at] - camera.y) * camera.zoom + height / 2;
      inside[at] = +(x[at] > -20 && x[at] < width + 20 && y[at] > -20 && y[at] < height + 20);
    }
    return { x, y, inside };
  }

  /** @typedef {{x: Float32Array, y: Float32Array, inside: Uint8Array}} Seen */
  /** @typedef {OffscreenCanvasRenderingContext2D | CanvasRenderingContext2D} Context */

  /** @param {Context} c @param {Seen} view @param {boolean} isQuick */
  #paintTies(c, view, isQuick) {
    const { ends, pairs } = this.graph;
    const draw = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ step) => {
      c.beginPath();
      for (let tie = from; tie < to; tie += step) {
        const left = pairs[2 * tie];
        const right = pairs[2 * tie + 1];
        // Long lines that only pass through cost the most time and are the least useful.
        if (!view.inside[left] && !view.inside[right]) continue;
        c.moveTo(view.x[left], view.y[left]);
        c.lineTo(view.x[right], view.y[right]);
      }
      c.stroke();
    };
    c.lineWidth = 1;
    if (!isQuick && ends[2] - ends[1] <= MOST_DOTTED) {
      c.strokeStyle = this.theme.faint;
      c.setLineDash([2, 4]);
      draw(ends[1], ends[2], 1);
      c.setLineDash([]);
    }
    c.strokeStyle = this.theme.link;
    draw(ends[0], ends[1], isQuick ? Math.max(1, Math.ceil((ends[1] - ends[0]) / MOST_LINES_MOVING)) : 1);
    c.strokeStyle = this.theme.relation;
    c.lineWidth = 1.5;
    draw(0, ends[0], 1);
  }

  /** @param {Context} c @param {Seen} view */
  #paintNotes(c, view) {
    const { graph, theme } = this;
    for (let group = theme.groups.length - 1; group >= 0; group--) {
      c.fillStyle = theme.groups[group];
      c.beginPath();
      for (let at = 0; at < graph.count; at++) {
        if (this.colour[at] !== group || !view.inside[at]) continue;
        const radius = this.radius(at);
        if (radius < SMALL_PX) c.rect(view.x[at] - radius, view.y[at] - radius, 2 * radius, 2 * radius);
        else {
          c.moveTo(view.x[at] + radius, view.y[at]);
          c.arc(view.x[at], view.y[at], radius, 0, 2 * Math.PI);
        }
      }
      c.fill();
    }
  }

  /** Draw names that do not overlap; those of the first notes win. @param {Context} c @param {Seen} view @param {number[]} notes @param {number} width @param {number} height @param {number} [most] */
  #paintNames(c, view, notes, width, height, most = this.#mostNames()) {
    /** @type {[number, number, number, number][]} */
    const taken = [];
    c.font = `${LABEL_PX}px system-ui, sans-serif`;
    c.textBaseline = 'middle';
    c.lineJoin = 'round';
    let tries = 0;
    for (const at of notes) {
      if (taken.length >= most || tries > 6 * most) break;
      if (!view.inside[at]) continue;
      tries++;
      const words = shortened(this.graph.names[at]);
      const x = view.x[at] + this.radius(at) + 4;
      const y = view.y[at];
      const right = x + c.measureText(words).width;
      if (x > width || y > height) continue;
      const box = /** @type {[number, number, number, number]} */ ([x - 4, y - LABEL_PX, right + 8, y + LABEL_PX]);
      if (taken.some((one) => box[0] < one[2] && one[0] < box[2] && box[1] < one[3] && one[1] < box[3])) continue;
      taken.push(box);
      c.strokeStyle = this.theme.background;
      c.lineWidth = 3;
      c.strokeText(words, x, y);
      c.fillStyle = this.theme.text;
      c.fillText(words, x, y);
    }
  }

  /** How many names to draw: fewer when zoomed out. */
  #mostNames() {
    const closer = this.camera.zoom / this.fitted;
    return Math.min(Math.round(22 * closer * LARGER * LARGER), MOST_LABELS * LARGER);
  }

  /** @param {{middle: number, notes: number[]}} focus */
  #paintFocus({ middle, notes }) {
    const { context: c, graph, theme } = this;
    const view = this.#positions(this.width, this.height);
    if (middle >= 0) {
      const styles = /** @type {[number, string, number[], number][]} */ ([[LIKENESS, theme.likeness, [2, 4], 1.25], [LINK, theme.text, [], 1], [RELATION, theme.relation, [], 2]]);
      for (const [kind, colour, dash, width] of styles) {
        c.strokeStyle = colour;
        c.lineWidth = width;
        c.setLineDash(dash);
        c.globalAlpha = kind === LINK ? 0.45 : 1;
        c.beginPath();
        for (const one of graph.near(middle)) {
          if (one.kind !== kind) continue;
          c.moveTo(view.x[middle], view.y[middle]);
          c.lineTo(view.x[one.note], view.y[one.note]);
        }
        c.stroke();
      }
      c.setLineDash([]);
      c.globalAlpha = 1;
    }
    for (const at of notes) {
      if (!view.inside[at]) continue;
      c.fillStyle = theme.groups[this.colour[at]];
      c.beginPath();
      c.arc(view.x[at], view.y[at], Math.max(this.radius(at), 3), 0, 2 * Math.PI);
      c.fill();
    }
    if (this.chosen >= 0) {
      c.strokeStyle = theme.text;
      c.lineWidth = 2;
      c.beginPath();
      c.arc(view.x[this.chosen], view.y[this.chosen], Math.max(this.radius(this.chosen), 3) + 3, 0, 2 * Math.PI);
      c.stroke();
    }
    const order = middle >= 0 ? notes : notes.sort((a, b) => graph.degree[b] - graph.degree[a]);
    this.#paintNames(c, view, order, this.width, this.height, 60);
  }
}

/** @param {string} name */
function shortened(name) {
  return name.length > 42 ? `${name.slice(0, 40)}…` : name;
}
