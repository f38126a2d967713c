// Memory: the remembered facts, each with the note it is from.

import { call, get, isAborted, post } from '../api.js';
import { dialog, failed, h, plural, replace, state, time, toast, waiting } from '../dom.js';
import { noteUrl } from '../router.js';
import { screenedBar } from '../screen.js';

const TYPING_MS = 150;
const MOST_FOUND = 50;

/** @type {import('../router.js').View} */
export const view = {
  title: 'Memory',
  async render(main, context) {
    const list = h('div', { 'aria-live': 'polite' });
    const field = h('input', { type: 'search', class: 'wide', placeholder: 'Search what is remembered', 'aria-label': 'Search what is remembered', oninput: () => later() });
    replace(main, h('div', { class: 'column stack' }, h('h1', {}, 'Memory'), field, list));
    let timer = 0;
    let asking = new AbortController();
    context.signal.addEventListener('abort', () => {
      clearTimeout(timer);
      asking.abort();
    });

    function later() {
      clearTimeout(timer);
      timer = window.setTimeout(load, TYPING_MS);
    }

    async function load() {
      asking.abort();
      asking = new AbortController();
      const query = field.value.trim();
      const stop = waiting(list, 'Looking …', asking.signal);
      try {
        const { data } = query ? await call('memory_recall', { query, limit: MOST_FOUND }, { signal: asking.signal }) : await get('memory', {}, { signal: asking.signal });
        stop();
        show(data.facts, query);
      } catch (error) {
        stop();
        if (!isAborted(error)) replace(list, failed(error, load));
      }
    }

    /** @param {any[]} facts @param {string} query */
    function show(facts, query) {
      if (facts.length) {
        replace(list, h('p', { class: 'muted small' }, plural(facts.length, 'fact')), h('ul', { class: 'plain facts-list' }, facts.map(row)));
      } else if (query) {
        replace(list, state('Nothing like that is remembered.', 'Facts are found by their key, their words and their meaning.', [h('button', { type: 'button', onclick: () => { field.value = ''; load(); } }, 'Show all')]));
      } else {
        replace(list, state('Nothing is remembered yet.', 'An agent remembers a fact when you ask it to. In a terminal:', [h('code', {}, 'obsidian-rag memory store')]));
      }
    }

    /** @param {any} fact */
    function row(fact) {
      const vault = context.start.vaults[0]?.id ?? '';
      if (fact.withheld) return h('li', {}, screenedBar(fact.sensitive_categories.join(', '), []));
      return h('li', {},
        h('div', {},
          h('strong', {}, fact.key),
          h('p', {}, fact.value),
          h('p', { class: 'muted small' }, h('a', { href: noteUrl(vault, fact.source) }, fact.source), ' · ', time(fact.stored_at))),
        h('button', { type: 'button', class: 'bare danger', 'aria-label': `Forget ${fact.key}`, onclick: () => ask(fact) }, 'Forget'));
    }

    /** @param {any} fact */
    function ask(fact) {
      const box = dialog(`Forget “${fact.key}”?`, [
        h('p', {}, fact.value),
        h('p', { class: 'muted' }, 'The note it came from does not change.'),
        h('div', { class: 'row end' },
          h('button', { type: 'button', onclick: () => box.close() }, 'Cancel'),
          h('button', { type: 'button', class: 'danger', onclick: async () => { box.close(); await forget(fact.key); } }, 'Forget')),
      ]);
    }

    /** @param {string} key */
    async function forget(key) {
      try {
        await post('memory/forget', { key });
        toast(`Forgot “${key}”`);
      } catch (error) {
        toast(/** @type {Error} */ (error).message);
      }
      await load();
    }

    await load();
  },
};
