// A note with its outline, backlinks and related notes. The list it was found in stays beside it.

import { get, isAborted } from '../api.js';
import { failed, h, icon, iconButton, replace, setSanitised, state, waiting } from '../dom.js';
import { listen } from '../events.js';
import { copy, hitList, open } from '../hits.js';
import { isTyping, onKey } from '../keys.js';
import { go, noteUrl, setTitle } from '../router.js';
import { screenedBar } from '../screen.js';
import { answerTo, isEmpty, searchOf } from '../search_state.js';
import { relatedPanel } from '../related.js';

/** @type {Reader | null} */
let shown = null;

class Reader {
  /** @param {HTMLElement} main @param {import('../router.js').Context} context */
  constructor(main, context) {
    this.context = context;
    this.vault = context.path[0] ?? '';
    this.path = context.path.slice(1).join('/');
    this.search = searchOf(context.query);
    /** The first lines of private parts shown despite the privacy screen, or all. @type {number[] | 'all'} */
    this.revealed = [];
    this.list = h('div', { class: 'found' });
    this.article = h('article', { class: 'note', 'aria-label': 'Note' });
    this.bar = h('div', { class: 'note-bar' });
    this.aside = h('aside', { class: 'beside', 'aria-label': 'About this note' });
    this.frame = h('div', { class: isEmpty(this.search) ? 'reader' : 'reader with-list' }, this.list, h('div', { class: 'centre' }, this.bar, this.article), this.aside);
    replace(main, this.frame);
  }

  async load() {
    const done = waiting(this.article, 'Reading the note …', this.context.signal);
    try {
      const isRevealing = this.revealed === 'all';
      this.note = (await get('note', { vault: this.vault, path: this.path, revealed: this.revealed.toString() }, { signal: this.context.signal, isRevealing })).data;
    } catch (error) {
      if (!isAborted(error)) this.failed(error);
      return;
    } finally {
      done();
    }
    setTitle(this.note.title);
    this.showBar();
    this.showNote();
    this.showBeside();
    this.mark(this.context.hash);
  }

  /** @param {any} error */
  failed(error) {
    const isGone = error.code === 'NOT_FOUND';
    const actions = [h('a', { class: 'button', href: `/search?q=${encodeURIComponent(this.path.split('/').at(-1) ?? '')}` }, 'Search for it'), h('button', { type: 'button', onclick: () => this.load() }, 'Try again')];
    replace(this.article, isGone ? state('This note no longer exists.', `${this.path}: it may have been moved, renamed or removed.`, actions) : failed(error, () => this.load()));
  }

  back() {
    return isEmpty(this.search) ? '/search' : `/search?${this.search}`;
  }

  showBar() {
    const { note } = this;
    const folders = note.path.split('/').slice(0, -1);
    replace(this.bar,
      h('a', { class: 'button bare', href: this.back(), title: 'Back to the list (Esc)' }, icon('back'), h('span', { class: 'unseen' }, 'Back to the list')),
      h('nav', { class: 'crumbs small', 'aria-label': 'Folder' }, folders.map((/** @type {string} */ name, /** @type {number} */ at) => [at > 0 && ' › ', h('a', { href: `/search?folder=${encodeURIComponent(folders.slice(0, at + 1).join('/'))}` }, name)]).flat()),
      h('span', { class: 'row' },
        h('button', { type: 'button', class: 'bare sheet-button', onclick: () => this.sheet() }, icon('related'), 'Related'),
        h('a', { class: 'button bare', href: `/map?note=${encodeURIComponent(note.path)}`, title: 'Show on the map' }, icon('map'), h('span', { class: 'wide-only' }, 'Map')),
        iconButton('copy', 'Copy link (c)', () => copy(note)),
        h('a', { class: 'button bare', href: note.link, title: 'Open in Obsidian (o)' }, icon('open'), h('span', { class: 'wide-only' }, 'Open in Obsidian'))));
  }

  showNote() {
    const { note } = this;
    const body = h('div', { class: 'note-body', dir: 'auto' });
    setSanitised(body, note.html);
    for (const link of body.querySelectorAll('a')) finish(link);
    const first = body.querySelector('h1');
    const hasTitle = first && first.textContent?.trim() === note.title && !first.previousElementSibling?.matches(':not(.private-label)');
    const properties = Object.entries(note.properties).filter(([name]) => !['title', 'tags', 'related', 'id', 'aliases'].includes(name));
    const facts = h('div', { class: 'note-facts small muted' }, note.date && h('span', {}, note.date), note.tags.map((/** @type {string} */ tag) => h('a', { class: 'tag', href: `/search?tag=${encodeURIComponent(tag.replace(/^#/, ''))}` }, `#${tag.replace(/^#/, '')}`)), note.is_cut && h('span', {}, 'only the beginning is shown'));
    const about = [
      facts,
      note.parse_error && h('p', { class: 'small muted' }, `Its properties cannot be read: ${note.parse_error}`),
      properties.length > 0 && h('details', { class: 'properties small' }, h('summary', {}, `Properties (${properties.length})`), h('dl', {}, properties.map(([name, value]) => [h('dt', {}, name), h('dd', { dir: 'auto' }, textOf(value))]).flat())),
    ].filter(Boolean);
    if (hasTitle && first) first.after(.../** @type {Node[]} */ (about));
    replace(this.article, !hasTitle && [h('h1', { class: 'note-title', dir: 'auto' }, note.title), ...about], body);
    for (const place of body.querySelectorAll('p.screened')) place.replaceWith(screenedBar(place.textContent ?? '', this.reveals(place)));
    if (!body.textContent?.trim() && !body.querySelector('img, audio, .screened')) replace(body, h('p', { class: 'muted' }, 'This note is empty.'));
  }

  /** The buttons that show what the privacy screen hides in a place. @param {Element} place @returns {[string, () => void][]} */
  reveals(place) {
    const line = Number(place.getAttribute('data-line'));
    const show = (/** @type {number[] | 'all'} */ revealed) => () => {
      this.revealed = revealed;
      this.load();
    };
    const known = this.revealed === 'all' ? [] : this.revealed;
    // An embedded note has its own line numbers.
    return [...(place.closest('.embed') ? [] : [/** @type {[string, () => void]} */ (['Show this one', show([...known, line])])]), ['Show this note', show('all')]];
  }

  showBeside() {
    const { note } = this;
    const close = iconButton('close', 'Close', () => this.sheet(false), { class: 'icon bare sheet-close' });
    const related = relatedPanel(this.vault, note, this.context, () => this.load());
    const backlinks = h('section', {}, h('h2', {}, 'Backlinks ', h('span', { class: 'muted' }, String(note.backlinks.length))),
      note.backlinks.length ? h('ul', { class: 'plain links' }, note.backlinks.map((/** @type {any} */ one) => h('li', {}, h('a', { href: noteUrl(one.vault || this.vault, one.path), dir: 'auto' }, one.title)))) : h('p', { class: 'muted small' }, 'No note links here.'));
    const heads = note.outline.filter((/** @type {any} */ head) => head.level > 0);
    const outline = heads.length > 1 && h('section', {}, h('h2', {}, 'Outline'), h('ul', { class: 'plain outline' }, heads.map((/** @type {any} */ head) => h('li', { class: `depth-${Math.min(head.level, 5)}` }, h('a', { href: `#L${head.line}`, dir: 'auto', onclick: () => this.sheet(false) }, head.text)))));
    replace(this.aside, close, related, backlinks, outline);
  }

  /** On narrow screens, show or hide what is otherwise beside the note. @param {boolean} [isOpen] */
  sheet(isOpen = !this.aside.classList.contains('open')) {
    this.aside.classList.toggle('open', isOpen);
    if (isOpen) /** @type {HTMLElement | null} */ (this.aside.querySelector('button, a'))?.focus();
  }

  async showList() {
    if (isEmpty(this.search)) return;
    try {
      const { data } = await answerTo(this.search, this.context.signal);
      replace(this.list, hitList(data.results, this.context.start, { search: `?${this.search}`, isNarrow: true, here: this.path }));
    } catch {
      // The list is a convenience; the note is what was asked for.
    }
  }

  /** Mark the lines or the heading that the address names. @param {string} hash */
  mark(hash) {
    const body = this.article.querySelector('.note-body');
    if (!body || !hash) return;
    for (const block of body.querySelectorAll('.here')) block.classList.remove('here');
    const lines = /^L(\d+)(?:-(\d+))?$/.exec(hash);
    const blocks = lines ? blocksAt(body, Number(lines[1]), Number(lines[2] ?? lines[1])) : headed(body, hash);
    for (const block of blocks) block.classList.add('here');
    blocks[0]?.scrollIntoView({ block: 'center' });
  }
}

/** The smallest blocks on some lines. @param {Element} body @param {number} first @param {number} last */
function blocksAt(body, first, last) {
  const blocks = [...body.querySelectorAll('[data-line]')].filter((block) => !block.closest('.embed'));
  const inside = blocks.filter((block) => Number(block.getAttribute('data-line')) <= last && Number(block.getAttribute('data-end')) >= first && !block.matches('thead, tbody, tr'));
  return inside.filter((block) => !block.matches('ul, ol, blockquote, li') || !inside.some((other) => other !== block && block.contains(other)));
}

/** @param {Element} body @param {string} name */
function headed(body, name) {
  const wanted = name.split('#').at(-1)?.trim().toLowerCase();
  return [...body.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter((head) => head.textContent?.trim().toLowerCase() === wanted).slice(0, 1);
}

/** Make links to other sites open in a new tab and name the real host. @param {HTMLAnchorElement} link */
function finish(link) {
  if (link.origin === location.origin && !link.pathname.startsWith('/page/')) return;
  if (link.protocol === 'obsidian:') return;
  link.target = '_blank';
  link.title = link.host === location.host ? 'Open the file' : link.host || link.href;
  link.classList.add('elsewhere');
}

/** @param {unknown} value @returns {string} */
function textOf(value) {
  if (Array.isArray(value)) return value.map(textOf).join(', ');
  return value !== null && typeof value === 'object' ? JSON.stringify(value) : String(value ?? '');
}

/** @type {import('../router.js').View} */
export const view = {
  title: 'Note',
  render(main, context) {
    const here = (shown = new Reader(main, context));
    onKey(context.signal, (event) => {
      if (isTyping(event.target)) return false;
      if (event.key === 'Escape') return here.aside.classList.contains('open') ? here.sheet(false) : go(here.back()), true;
      if (event.target instanceof Element && event.target.closest('.found')) return false;
      if (event.key === 'o' && here.note) return open(here.note), true;
      if (event.key === 'c' && here.note) return copy(here.note), true;
      if (event.key === 'r') return here.sheet(true), true;
      return false;
    });
    const stop = listen('changes', (data) => (data.paths ?? []).includes(here.path) && here.load());
    here.load();
    here.showList();
    return () => {
      stop();
      shown = null;
    };
  },
  update(context) {
    shown?.mark(context.hash);
  },
};
