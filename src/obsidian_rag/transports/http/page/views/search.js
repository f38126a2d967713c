// Search as you type: only the latest answer is shown, filters are chips, every hit is explained.

import { get, isAborted } from '../api.js';
import { failed, h, icon, plural, replace, say, state } from '../dom.js';
import { typedEarly } from '../early_keys.js';
import { listen } from '../events.js';
import { choose, hitList } from '../hits.js';
import { isTyping, onKey } from '../keys.js';
import { setTitle } from '../router.js';
import { answerTo, forget, isEmpty, searchOf } from '../search_state.js';
import { filterPanel } from '../filters.js';

const PAUSE_MS = 60;
/** @type {Search | null} */
let shown = null;

class Search {
  /** @param {HTMLElement} main @param {import('../router.js').Context} context */
  constructor(main, context) {
    this.context = context;
    this.search = searchOf(context.query);
    this.turn = 0;
    /** @type {AbortController | null} */
    this.asking = null;
    this.timer = 0;
    this.field = h('input', { type: 'search', name: 'q', placeholder: 'Search your notes', 'aria-label': 'Search your notes', autocomplete: 'off', spellcheck: 'false', enterkeyhint: 'search', value: this.search.get('q') ?? '', oninput: (/** @type {InputEvent} */ event) => !event.isComposing && this.typed(), oncompositionend: () => this.typed(), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) });
    this.chips = h('div', { class: 'chips row' });
    this.notice = h('div', { class: 'notice-line' });
    this.answer = h('div', { class: 'answer' });
    replace(main, h('div', { class: 'search-view' },
      h('form', { role: 'search', class: 'search-box', onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); this.ask(); } }, icon('search'), this.field, h('kbd', { 'aria-hidden': 'true' }, '/')),
      this.chips, this.notice, this.answer));
    this.field.focus({ preventScroll: true });
    this.showChips(null);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === 'ArrowDown') {
      event.preventDefault();
      const first = this.answer.querySelector('.hit');
      if (first) choose(first);
    } else if (event.key === 'Enter' && !event.isComposing) {
      event.preventDefault();
      clearTimeout(this.timer);
      this.change('q', this.field.value);
    } else if (event.key === 'Escape' && this.field.value) {
      event.preventDefault();
      this.field.value = '';
      this.typed();
    }
  }

  typed() {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.change('q', this.field.value), PAUSE_MS);
  }

  /** Change one parameter of the search, and run it. @param {string} name @param {string | string[]} value */
  change(name, value) {
    this.search.delete(name);
    for (const one of [value].flat()) if (one) this.search.append(name, one);
    if (name === 'q') this.search.delete('dates');
    history.replaceState(history.state, '', `/search${isEmpty(this.search) ? '' : `?${this.search}`}`);
    return this.ask();
  }

  async ask() {
    const mine = ++this.turn;
    this.asking?.abort();
    this.asking = new AbortController();
    const signal = AbortSignal.any([this.asking.signal, this.context.signal]);
    setTitle(this.search.get('q') || 'Search');
    if (isEmpty(this.search)) return this.idle();
    this.answer.classList.add('waiting');
    const slow = setTimeout(() => mine === this.turn && !this.answer.firstChild && replace(this.answer, state('Searching your notes …')), 400);
    try {
      const envelope = await answerTo(new URLSearchParams(this.search), signal);
      if (mine === this.turn) this.show(envelope);
    } catch (error) {
      if (mine === this.turn && !isAborted(error)) {
        this.showChips(null);
        replace(this.notice);
        replace(this.answer, failed(error, () => this.ask()));
      }
    } finally {
      clearTimeout(slow);
      if (mine === this.turn) this.answer.classList.remove('waiting');
    }
  }

  /** @param {import('../api.js').Envelope} envelope */
  show(envelope) {
    const { data, error } = envelope;
    this.showChips(data.suggested_filter);
    replace(this.notice, error && h('p', { class: 'trouble' }, icon('warning'), h('span', {}, `${error.message} (${error.code}) ${error.suggestion}`)));
    if (!data.results.length) return this.nothing();
    const lead = data.is_weak ? h('p', { class: 'lead' }, 'Nothing in your notes seems to answer this. Nearest:') : null;
    const corrected = data.searched_for ? h('p', { class: 'lead' }, 'Searched for ', h('em', {}, data.searched_for)) : null;
    const chosen = [...this.answer.querySelectorAll('.hit')].findIndex((hit) => hit.contains(document.activeElement));
    replace(this.answer, corrected, lead, hitList(data.results, this.context.start, { search: `?${this.search}` }));
    const hits = this.answer.querySelectorAll('.hit');
    if (chosen >= 0) choose(hits[chosen] ?? hits[0]);
    say(`${plural(data.results.length, 'passage')} found`);
  }

  nothing() {
    const filters = [...this.search.keys()].filter((name, at, all) => name !== 'q' && name !== 'dates' && all.indexOf(name) === at);
    const vaults = this.context.start.vaults.map((/** @type {any} */ vault) => vault.name).join(', ');
    const cause = filters.length ? `Searched in ${vaults}, within the filters above.` : `Searched all notes of ${vaults}.`;
    const drop = filters.map((name) => h('button', { type: 'button', onclick: () => this.change(name, []) }, `Search without ${NAMES[name] ?? name}`));
    replace(this.answer, state('Nothing found.', cause, drop));
    say('Nothing found');
  }

  async idle() {
    replace(this.notice);
    this.showChips(null);
    const tags = h('div', { class: 'row' });
    replace(this.answer, h('div', { class: 'idle' },
      h('p', {}, 'Ask in your own words, or name what you remember: a person, a place, a month.'),
      h('p', { class: 'muted small' }, h('kbd', {}, '"exact words"'), ' ', h('kbd', {}, '-without'), ' ', h('kbd', {}, 'tag:people'), ' ', h('kbd', {}, 'path:Journal'), ' ', h('kbd', {}, 'after:2026-01')),
      tags));
    this.answer.classList.remove('waiting');
    try {
      const { choices } = (await get('filters', { kind: 'tag' }, { signal: this.context.signal })).data;
      replace(tags, choices.map((/** @type {any} */ tag) => h('a', { class: 'chip', href: `/search?tag=${encodeURIComponent(tag.value)}` }, `#${tag.value}`)));
    } catch {
      // The tags are optional.
    }
  }

  /** @param {any} suggested */
  showChips(suggested) {
    /** @type {(HTMLElement | false)[]} */
    const chips = [];
    for (const name of ['vault', 'folder', 'tag', 'prop']) {
      for (const value of this.search.getAll(name)) {
        const others = this.search.getAll(name).filter((other) => other !== value);
        chips.push(chip(`${PREFIX[name]}${value}`, `Remove ${NAMES[name]} ${value}`, () => this.change(name, others)));
      }
    }
    for (const name of ['from', 'to']) {
      const day = this.search.get(name);
      if (day) chips.push(chip(`${name} ${day}`, `Remove ${name} ${day}`, () => this.change(name, [])));
    }
    if (suggested?.applied) {
      const { from, to } = suggested.date_range;
      chips.push(chip(`${span(from, to)} · from your question`, `Do not narrow to ${span(from, to)}`, () => this.change('dates', 'off'), 'found'));
    }
    replace(this.chips, filterPanel(this.context.start.vaults, (name, value) => this.change(name, [...(name === 'from' || name === 'to' ? [] : this.search.getAll(name)), value])), chips);
  }
}

const PREFIX = /** @type {Record<string, string>} */ ({ tag: '#', folder: '', prop: '', vault: '' });
const NAMES = /** @type {Record<string, string>} */ ({ vault: 'the vault', tag: 'the tag', folder: 'the folder', prop: 'the property', from: 'the first day', to: 'the last day' });

/** @param {string} text @param {string} label @param {() => void} remove @param {string} [kind] */
function chip(text, label, remove, kind = 'on') {
  return h('button', { type: 'button', class: `chip ${kind}`, 'aria-label': label, title: label, onclick: remove }, text, icon('close'));
}

/** A span of days, as short as possible. @param {string | null} from @param {string | null} to */
function span(from, to) {
  if (!from || !to) return from ? `since ${from}` : `until ${to}`;
  if (from.endsWith('-01-01') && to === `${from.slice(0, 4)}-12-31`) return from.slice(0, 4);
  const lastDay = new Date(Date.UTC(Number(from.slice(0, 4)), Number(from.slice(5, 7)), 0)).getUTCDate();
  if (from.endsWith('-01') && to === `${from.slice(0, 8)}${lastDay}`) return from.slice(0, 7);
  return from === to ? from : `${from} – ${to}`;
}

/** @type {import('../router.js').View} */
export const view = {
  title: 'Search',
  render(main, context) {
    const here = (shown = new Search(main, context));
    onKey(context.signal, (event) => {
      if (event.key === 'Escape' && !isTyping(event.target)) return here.field.focus(), true;
      if (event.key === 'ArrowDown' && event.target === document.body) return choose(here.answer.querySelector('.hit')), true;
      return false;
    });
    const stops = [
      listen('job', (job) => job.finished_at && forget()),
      listen('ready', () => here.answer.querySelector('.state.bad') && here.ask()),
    ];
    const early = typedEarly();
    if (early) here.change('q', (here.field.value += early));
    else here.ask();
    return () => {
      for (const stop of stops) stop();
      shown = null;
      here.asking?.abort();
      clearTimeout(here.timer);
    };
  },
  update(context) {
    if (!shown) return;
    clearTimeout(shown.timer);
    shown.search = searchOf(context.query);
    shown.field.value = shown.search.get('q') ?? '';
    shown.ask();
  },
};
