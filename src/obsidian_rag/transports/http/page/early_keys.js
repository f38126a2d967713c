// Letters typed while the page is still loading, for the search field.

let text = '';
const over = new AbortController();

/** Keep what is typed until `typedEarly` takes it. */
export function catchEarly() {
  document.addEventListener('keydown', (event) => {
    if (event.target !== document.body || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === 'Backspace') text = text.slice(0, -1);
    else if (event.key.length !== 1) return;
    else if (text || !'/ '.includes(event.key)) text += event.key;
    event.preventDefault();
  }, { capture: true, signal: over.signal });
}

/** What was typed so far; from now on the view handles keys itself. */
export function typedEarly() {
  over.abort();
  const typed = text;
  text = '';
  return typed;
}
