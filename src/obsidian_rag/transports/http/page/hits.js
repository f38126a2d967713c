// The list of found passages: shows and explains them, and moves through them by keys.

import { call } from './api.js';
import { h, iconButton, replace, toast } from './dom.js';
import { isTyping } from './keys.js';
import { go, noteUrl } from './router.js';
import { privateLabel, screenedBar } from './screen.js';

/** The name of each signal on screen, and its colour. @type {Record<string, [string, number]>} */
const SIGNALS = {
  text: ['words', 1],
  letters: ['parts of words', 1],
  code: ['code and properties', 1],
  meaning: ['meaning', 2],
  static: ['similar words', 2],
  title: ['title', 3],
  heading: ['headings', 4],
  date: ['date', 5],
};
const EDGES = /[.!?。！？]["')\]]?\s/g;
const SHORT = 420;

/** The name of a hit's vault. @param {any} start @param {string | null} id */
export function vaultName(start, id) {
  const vault = start.vaults.find((/** @type {any} */ one) => one.id === id) ?? start.vaults[0];
  return vault?.name ?? '';
}

/** The address at which a hit is read. @param {any} start @param {any} hit @param {string} search such as `?q=x` */
export function hitUrl(start, hit, search) {
  const lines = hit.end_line > hit.start_line ? `L${hit.start_line}-${hit.end_line}` : `L${hit.start_line}`;
  return noteUrl(vaultName(start, hit.link_id), hit.source_file, `${search}#${lines}`);
}

/** @param {number} score */
export function grade(score) {
  return score > 0.7 ? 'good' : score > 0.4 ? 'fair' : 'low';
}

/** A score with two decimals. @param {number} score */
export function figure(score) {
  return score >= 0.995 ? '1.0' : score.toFixed(2).replace(/^0/, '');
}

/**
 * A bar of stacked shares, which can also be shown in words.
 * @param {number} score @param {[string, number, number][]} shares name, colour and size of each
 */
export function scoreBar(score, shares) {
  const total = shares.reduce((sum, [, , size]) => sum + size, 0) || 1;
  const shown = [...shares].filter(([, , size]) => size > 0.004).sort((a, b) => b[2] - a[2]);
  const words = shown.map(([name, , size]) => `${name} ${figure(size)}`).join(' · ');
  const bar = h('span', { class: 'bar' }, shown.map(([, colour, size]) => h('i', { class: `share-${colour}`, style: { width: `${(100 * score * size) / total}%` } })));
  const why = h('span', { class: 'why', hidden: true }, words);
  const button = h('button', { type: 'button', class: 'score bare', title: words, 'aria-expanded': 'false', 'aria-label': `Score ${figure(score)}: why`, onclick: () => {
    why.hidden = !why.hidden;
    button.setAttribute('aria-expanded', String(!why.hidden));
  } }, bar, h('b', { class: grade(score) }, figure(score)));
  return h('span', { class: 'score-line' }, button, why);
}

/** The shares of a hit's score; shares of the same name are added. @param {any} hit @returns {[string, number, number][]} */
function shares(hit) {
  /** @type {Map<string, [string, number, number]>} */
  const joined = new Map();
  for (const [name, size] of Object.entries(hit.why.signals)) {
    const [word, colour] = SIGNALS[name] ?? [name, 5];
    const before = joined.get(word)?.[2] ?? 0;
    joined.set(word, [word, colour, before + Number(size)]);
  }
  return [...joined.values()];
}

/** Text of a note without Markdown syntax. @param {string} text */
export function plain(text) {
  return text
    .replace(/!?\[\[(?:[^\]|\n]*\|)?([^\]\n]*)\]\]/g, '$1')
    .replace(/!?\[([^\]\n]*)\]\([^)\n]*\)/g, '$1')
    .replace(/^[ \t]*\|?[ \t:|-]+\|[ \t:|-]*\n?/gm, (line) => (/-/.test(line) && !/[^\s:|-]/.test(line) ? '' : line))
    .replace(/^[ \t]*\|(.*)\|[ \t]*$/gm, (_, row) => row.split('|').map((/** @type {string} */ cell) => cell.trim()).filter(Boolean).join('  ·  '))
    .replace(/^#{1,6}\s+/gm, '')
    .replace(/^(\s*)[-*+]\s+(\[.\]\s+)?/gm, '$1• ')
    .replace(/^>\s?/gm, '')
    .replace(/(\*\*|__|==|~~|`)/g, '')
    .replace(/\n{2,}/g, '\n')
    .trim();
}

/** Cut at the end of a sentence. @param {string} text @param {number} most */
export function cut(text, most) {
  if (text.length <= most) return text;
  let end = -1;
  for (const found of text.slice(0, most).matchAll(EDGES)) end = found.index + 1;
  return `${text.slice(0, end > most / 2 ? end : text.lastIndexOf(' ', most))} …`;
}

/** The text with the question's words highlighted. @param {string} text @param {string[]} terms @returns {(Node | string)[]} */
export function tinted(text, terms) {
  const words = terms.filter((term) => term.length > 1).map((term) => term.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  if (!words.length) return [text];
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.sort((a, b) => b.length - a.length).join('|')})[\\p{L}\\p{N}]{0,3}(?![\\p{L}\\p{N}])|(?:${words.filter((word) => /[^\x00-\u024f]/.test(word)).join('|') || '(?!)'})`, 'giu');
  /** @type {(Node | string)[]} */
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(pattern)) {
    parts.push(text.slice(last, found.index), h('mark', {}, found[0]));
    last = found.index + found[0].length;
  }
  return [...parts, text.slice(last)];
}


/**
 * A list of hits.
 * @param {any[]} hits @param {any} start @param {{search: string, isNarrow?: boolean, here?: string}} options
 */
export function hitList(hits, start, options) {
  const list = h('ol', { class: `hits plain${options.isNarrow ? ' narrow' : ''}`, 'aria-label': 'Found passages' });
  list.append(...hits.map((hit) => item(hit, start, options)));
  list.addEventListener('keydown', (event) => move(list, event));
  return list;
}

/** @param {any} hit @param {any} start @param {{search: string, isNarrow?: boolean, here?: string}} options */
function item(hit, start, options) {
  const url = hitUrl(start, hit, options.search);
  const crumbs = [...hit.source_file.replace(/\.md$/i, '').split('/')];
  const headings = hit.heading_path.filter((/** @type {string} */ text) => text !== hit.title && text !== crumbs.at(-1));
  const place = [start.vaults.length > 1 && vaultName(start, hit.link_id), ...crumbs.slice(0, -1), hit.title, ...headings].filter(Boolean);
  let text = plain(hit.chunk_text).replace(new RegExp(`^${escaped(headings.at(-1) ?? hit.title)}\\n`), '');
  const passage = h('p', { class: 'passage', dir: 'auto' }, tinted(cut(text, options.isNarrow ? 120 : SHORT), hit.why.terms));
  const lines = hit.end_line > hit.start_line ? `${hit.start_line}–${hit.end_line}` : `${hit.start_line}`;
  const isHere = options.here === hit.source_file;
  const screened = screenedBar(hit.sensitive_categories.join(', '), [['Show this one', async () => {
    const { data } = await call('read', { note: hit.source_file, vault: vaultName(start, hit.link_id), start_line: hit.start_line, end_line: hit.end_line }, { isRevealing: true });
    text = plain(data.text);
    replace(passage, cut(text, SHORT));
    screened.replaceWith(passage);
  }]]);
  const row = h('li', { class: 'hit', 'data-path': hit.source_file },
    h('div', { class: 'hit-head' },
      h('a', { class: 'hit-title', href: url, dir: 'auto', 'aria-current': isHere ? 'true' : null }, place.map((part, at) => [at > 0 && h('span', { class: 'sep', 'aria-hidden': 'true' }, ' › '), at === place.length - 1 - headings.length ? h('strong', {}, part) : part]).flat()),
      privateLabel(hit.sensitive_categories),
      !options.isNarrow && h('span', { class: 'hit-facts muted small' }, h('span', { title: 'Lines' }, lines), hit.date && h('span', {}, hit.date))),
    hit.withheld ? screened : passage,
    !options.isNarrow && h('div', { class: 'hit-foot' },
      scoreBar(hit.score, shares(hit)),
      h('span', { class: 'tags' }, hit.tags.slice(0, 5).map((/** @type {string} */ tag) => h('a', { class: 'tag', href: `/search?tag=${encodeURIComponent(tag.replace(/^#/, ''))}` }, `#${tag.replace(/^#/, '')}`))),
      h('span', { class: 'acts' },
        iconButton('open', 'Open in Obsidian (o)', () => open(hit)),
        iconButton('copy', 'Copy link (c)', () => copy(hit)),
        iconButton('related', 'Related notes (r)', () => go(url)))),
  );
  /** @type {any} */ (row).hit = hit;
  /** @type {any} */ (row).more = () => {
    const isLong = passage.classList.toggle('whole');
    replace(passage, tinted(isLong ? text : cut(text, SHORT), hit.why.terms));
  };
  return row;
}

/** @param {string} text */
function escaped(text) {
  return (text ?? '').replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

/** @param {any} hit */
export function open(hit) {
  location.href = hit.link;
}

/** @param {any} hit */
export async function copy(hit) {
  await navigator.clipboard.writeText(hit.link);
  toast('Link copied');
}

/** @param {HTMLElement} list @param {KeyboardEvent} event */
function move(list, event) {
  const row = /** @type {any} */ (event.target instanceof Element ? event.target.closest('.hit') : null);
  if (!row || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
  const act = /** @type {Record<string, () => void>} */ ({
    ArrowDown: () => choose(row.nextElementSibling),
    ArrowUp: () => choose(row.previousElementSibling),
    Home: () => choose(list.firstElementChild),
    End: () => choose(list.lastElementChild),
    j: () => choose(row.nextElementSibling),
    k: () => choose(row.previousElementSibling),
    o: () => open(row.hit),
    c: () => copy(row.hit),
    r: () => row.querySelector('.hit-title').click(),
    ' ': () => row.more(),
  })[event.key];
  if (!act || (event.key === ' ' && /** @type {Element} */ (event.target).closest('button'))) return;
  event.preventDefault();
  act();
}

/** Focus a hit, or without one the search field. @param {Element | null} row */
export function choose(row) {
  if (row) /** @type {HTMLElement} */ (row.querySelector('.hit-title')).focus();
  else /** @type {HTMLElement | null} */ (document.querySelector('input[type=search]'))?.focus();
}
