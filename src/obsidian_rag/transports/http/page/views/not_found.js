// The view for unknown addresses.

import { h, replace, state } from '../dom.js';

/** @type {import('../router.js').View} */
export const view = {
  title: 'Not here',
  render(main) {
    replace(main, h('div', { class: 'column' }, state('There is nothing at this address.', 'It may belong to another version.', [h('a', { class: 'button', href: '/search' }, 'Search your notes')])));
  },
};
