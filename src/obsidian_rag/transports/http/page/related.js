// Related notes: the score, the reasons, and a relation to write after a preview of the change.

import { call, get, isAborted } from './api.js';
import { dialog, failed, h, icon, replace, state, toast, waiting } from './dom.js';
import { cut, figure, grade, plain } from './hits.js';
import { noteUrl } from './router.js';
import { privateLabel } from './screen.js';

const MOST = 12;
const SIGNALS = /** @type {Record<string, [string, number]>} */ ({
  bm25: ['words', 1],
  cosine: ['rare words', 1],
  terms: ['vocabulary', 1],
  vector: ['meaning', 2],
  title: ['title', 3],
  tags: ['tags', 4],
  graph: ['links', 5],
  neighbours: ['common neighbours', 5],
});

/**
 * @param {string} vault @param {any} note as `/page/note` answers @param {import('./router.js').Context} context
 * @param {() => void} onWritten
 */
export function relatedPanel(vault, note, context, onWritten) {
  const { path } = note;
  const linking = new Set(note.backlinks.map((/** @type {any} */ one) => `${one.vault || vault}/${one.path}`));
  const list = h('div', { class: 'related' });
  const isHiding = localStorage.getItem('hide-linked') !== 'no';
  const box = h('input', { type: 'checkbox', checked: isHiding, onchange: () => {
    localStorage.setItem('hide-linked', box.checked ? 'yes' : 'no');
    load();
  } });
  async function load() {
    const done = waiting(list, 'Comparing notes …', context.signal);
    try {
      const { data } = await call('related', { note: path, vault, max_results: Math.min(MOST + (box.checked ? linking.size : 0), 200), hide_linked: box.checked }, { signal: context.signal });
      // Notes that link here count as linked, too.
      const shown = data.results.filter((/** @type {any} */ one) => !box.checked || !linking.has(`${one.vault ?? vault}/${one.source_file}`)).slice(0, MOST);
      replace(list, shown.length ? h('ol', { class: 'plain' }, shown.map((/** @type {any} */ one) => row(one))) : state('No other note comes close.', box.checked ? 'Linked notes are hidden.' : ''));
    } catch (error) {
      if (!isAborted(error)) replace(list, failed(error, load));
    } finally {
      done();
    }
  }
  /** @param {any} one */
  function row(one) {
    const own = context.start.vaults.find((/** @type {any} */ known) => known.name === vault);
    const isWritable = own?.mode !== 'read_only' && (one.vault ?? vault) === vault;
    const meeting = one.passages.filter((/** @type {any} */ passage) => passage.text);
    return h('li', {},
      h('div', { class: 'related-head' }, scoreOf(one), h('a', { href: noteUrl(one.vault ?? vault, one.source_file), dir: 'auto' }, one.title), privateLabel(one.sensitive_categories)),
      h('p', { class: 'small muted reasons', dir: 'auto' }, sentence(one.reasons)),
      h('div', { class: 'row' },
        meeting.length > 0 && h('details', { class: 'meeting small' }, h('summary', {}, 'Where they meet'), meeting.map((/** @type {any} */ passage) => h('blockquote', { dir: 'auto' }, cut(plain(passage.text), 260)))),
        isWritable && h('button', { type: 'button', class: 'bare small', onclick: () => relate(vault, path, one, onWritten) }, icon('plus'), 'Add relation')));
  }
  load();
  return h('section', {}, h('div', { class: 'related-top' }, h('h2', {}, 'Related notes'), h('label', { class: 'small muted' }, box, 'Hide linked')), list);
}

/** @param {any} one */
function scoreOf(one) {
  /** @type {[string, number, number][]} */
  const shares = Object.entries(one.signals).map(([name, signal]) => [...(SIGNALS[name] ?? [name, 5]), /** @type {any} */ (signal).share]);
  const words = shares.filter(([, , size]) => size > 0.02).sort((a, b) => b[2] - a[2]).map(([name, , size]) => `${name} ${figure(size)}`).join(' · ');
  const bar = h('span', { class: 'bar' }, shares.map(([, colour, size]) => h('i', { class: `share-${colour}`, style: { width: `${100 * one.score * size}%` } })));
  const why = h('span', { class: 'why', hidden: true }, words);
  const button = h('button', { type: 'button', class: 'score bare', title: words, 'aria-expanded': 'false', 'aria-label': `Score ${figure(one.score)}: why`, onclick: () => {
    why.hidden = !why.hidden;
    button.setAttribute('aria-expanded', String(!why.hidden));
  } }, h('b', { class: grade(one.score) }, figure(one.score)), bar);
  return h('span', { class: 'score-line' }, button, why);
}

/** Reasons as one sentence. @param {string[]} reasons */
function sentence(reasons) {
  const words = reasons.join('; ');
  return words ? `${words[0].toUpperCase()}${words.slice(1)}.` : 'Similar in meaning.';
}

/** Show the exact change, then write it. @param {string} vault @param {string} path @param {any} one @param {() => void} onWritten */
async function relate(vault, path, one, onWritten) {
  const rel = h('input', { type: 'text', value: 'related', maxlength: '100', list: 'rels', onchange: () => preview() });
  const lines = h('div', { class: 'diffs' });
  const write = h('button', { type: 'button', class: 'primary', disabled: true, onclick: () => save() }, 'Add relation');
  const box = dialog(`Relate to ${one.title}`, [
    h('p', { class: 'muted' }, 'Nothing is written until you agree. This is the exact change:'),
    lines,
    h('label', { class: 'row' }, 'How they are related', rel, h('datalist', { id: 'rels' }, ['related', 'supports', 'references', 'contradicts', 'continues'].map((word) => h('option', { value: word })))),
    h('div', { class: 'row end' }, h('button', { type: 'button', onclick: () => box.close() }, 'Cancel'), write),
  ], { class: 'relate' });
  async function preview() {
    write.disabled = true;
    try {
      const { changes } = (await get('relation', { vault, note: path, target: one.source_file, rel: rel.value })).data;
      write.disabled = changes.length === 0;
      replace(lines, changes.length ? changes.map(diff) : state('This relation already exists.'));
    } catch (error) {
      replace(lines, failed(error));
    }
  }
  async function save() {
    write.disabled = true;
    try {
      await call('add_relation', { vault, note: path, target: one.source_file, rel: rel.value, add_missing_id: true });
      box.close();
      toast('Relation added');
      onWritten();
    } catch (error) {
      replace(lines, failed(error));
    }
  }
  await preview();
}

/** The changed lines of one note. @param {{path: string, lines: {sign: string, text: string}[]}} change */
export function diff(change) {
  const signs = /** @type {Record<string, string>} */ ({ '+': 'added', '-': 'removed', ' ': 'kept' });
  return h('figure', { class: 'diff' }, h('figcaption', { class: 'small muted' }, change.path), h('pre', {}, change.lines.map((line) => h('span', { class: signs[line.sign] }, `${line.sign} ${line.text}\n`))));
}
